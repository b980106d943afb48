/* The first process of each pod: it holds the pod's namespaces and reaps orphans until it is told to end. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void end(int signal_number) {
  (void)signal_number;
  _exit(0);
}

static void reap(int signal_number) {
  (void)signal_number;
  while (waitpid(-1, 0, WNOHANG) > 0) {
  }
}

int main(void) {
  struct sigaction on_end = {.sa_handler = end};
  struct sigaction on_child = {.sa_handler = reap, .sa_flags = SA_NOCLDSTOP};
  if (sigaction(SIGTERM, &on_end, 0) != 0 || sigaction(SIGINT, &on_end, 0) != 0 ||
      sigaction(SIGCHLD, &on_child, 0) != 0)
    return 1;
  for (;;) pause();
}
