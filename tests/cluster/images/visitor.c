/* The self test's container. `visitor wait` sleeps until SIGTERM, `visitor resolve NAME` prints NAME's address,
 * `visitor listen PORT` accepts connections until SIGTERM (a sidecar with a probe), `visitor write FILE` makes FILE,
 * `visitor connect NAME PORT` opens a connection. */
#include <arpa/inet.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void end(int signal_number) {
  (void)signal_number;
  _exit(0);
}

static int resolve(const char* name, const char* port) {
  struct addrinfo wanted = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found;
  int outcome = getaddrinfo(name, port, &wanted, &found);
  if (outcome != 0) {
    fprintf(stderr, "%s: %s\n", name, gai_strerror(outcome));
    return 1;
  }
  if (port != 0 && connect(socket(AF_INET, SOCK_STREAM, 0), found->ai_addr, found->ai_addrlen) != 0) {
    perror(name);
    return 1;
  }
  char text[INET_ADDRSTRLEN];
  struct sockaddr_in* address = (struct sockaddr_in*)found->ai_addr;
  puts(inet_ntop(AF_INET, &address->sin_addr, text, sizeof text));
  return 0;
}

static int listen_on(int port) {
  int yes = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (bind(listener, (struct sockaddr*)&address, sizeof address) != 0 || listen(listener, 8) != 0) {
    perror("listen");
    return 1;
  }
  for (;;) close(accept(listener, 0, 0));
}

int main(int count, char** words) {
  signal(SIGTERM, end);
  if (count == 3 && strcmp(words[1], "resolve") == 0) return resolve(words[2], 0);
  if (count == 4 && strcmp(words[1], "connect") == 0) return resolve(words[2], words[3]);
  if (count == 3 && strcmp(words[1], "listen") == 0) return listen_on(atoi(words[2]));
  if (count == 3 && strcmp(words[1], "write") == 0) {
    FILE* file = fopen(words[2], "w");
    return file == 0 || fputs("written by a pod\n", file) < 0 || fclose(file) != 0;
  }
  puts("waiting");
  fflush(stdout);
  for (;;) pause();
}
