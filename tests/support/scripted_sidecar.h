// A sidecar that does what the test says, line by line: listens on a Unix socket of its own, speaks
// the local protocol with the real codecs, owns a control block in a memfd and opens and closes its
// gates. Nothing happens by itself.
//
// Waiting is bounded: what does not come within kPatience throws with a sentence, which fails the
// test. A test that runs the rank on a future declares the future before the sidecar, so that a
// failing test opens the gates (the sidecar's end) before it joins the rank.
#pragma once

#include <linux/futex.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>
#include <xxhash.h>

#include <chrono>
#include <cstring>
#include <deque>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "common/base/format.h"
#include "tests/support/temporary_folder.h"
#include "worker-sidecar/protocol/control_block.h"
#include "worker-sidecar/protocol/frame.h"
#include "worker-sidecar/protocol/local_message.h"
#include "worker-sidecar/protocol/rebuild_order.h"

namespace rekindle::runtime::testing {

inline constexpr int kPatienceMilliseconds = 20'000;

// Looks every millisecond until it is so.
inline void wait_until(const std::function<bool()>& is_so, std::string_view what) {
  for (int waited = 0; !is_so(); ++waited) {
    if (waited > kPatienceMilliseconds) throw std::runtime_error("waited in vain until " + std::string(what));
    ::poll(nullptr, 0, 1);
  }
}

// A control block as a sidecar makes it, in memory that can be handed to another process.
class ControlMemory {
 public:
  struct Shape {
    std::uint32_t rank = 0;
    std::uint32_t world_size = 1;
    std::uint32_t slot_bytes = 128u << 10;
    std::uint64_t incarnation = 7;
  };

  ControlMemory() : ControlMemory(Shape{}) {}
  explicit ControlMemory(const Shape& shape) : bytes_(kControlSlotsOffset + 2ull * shape.slot_bytes) {
    descriptor_ = ::memfd_create("rekindle-control", MFD_CLOEXEC);
    if (descriptor_ < 0 || ::ftruncate(descriptor_, static_cast<off_t>(bytes_)) != 0)
      throw std::runtime_error("no memfd");
    void* const memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("no mapping");
    block_ = static_cast<ControlBlock*>(memory);
    block_->magic = kControlMagic;
    block_->version = kControlVersion;
    block_->total_bytes = static_cast<std::uint32_t>(bytes_);
    block_->rank = shape.rank;
    block_->world_size = shape.world_size;
    block_->incarnation = shape.incarnation;
    block_->slot_bytes = shape.slot_bytes;
    block_->slot_offset = static_cast<std::uint32_t>(kControlSlotsOffset);
  }
  ~ControlMemory() {
    ::munmap(block_, bytes_);
    ::close(descriptor_);
  }
  ControlMemory(const ControlMemory&) = delete;
  ControlMemory& operator=(const ControlMemory&) = delete;

  ControlBlock& operator*() const { return *block_; }
  ControlBlock* operator->() const { return block_; }
  int descriptor() const { return descriptor_; }
  std::uint64_t bytes() const { return bytes_; }
  RankStatus word() const { return decode_word(block_->word.load(std::memory_order_acquire)); }

  std::uint32_t hold() {
    block_->permit.store(0, std::memory_order_relaxed);
    store_order(GateOrder::go_on);
    block_->hold.store(++hold_number_, std::memory_order_release);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    ring();
    return hold_number_;
  }
  void permit(std::uint64_t step) {
    block_->permit.store(step, std::memory_order_release);
    ring();
  }
  void release(GateOrder order) {
    store_release(order);
    ring();
  }
  void release_to_rebuild(const RebuildOrder& order) {
    if (!write_rebuild_order(*block_, order)) throw std::runtime_error("an order to rebuild that does not fit");
    release(GateOrder::go_on);
  }
  // The sidecar has heard that the rank has carried it out.
  void settle_rebuild() { store_order(GateOrder::go_on); }
  // What a sidecar leaves that dies before it has woken anybody.
  void store_release(GateOrder order) {
    store_order(order);
    block_->permit.store(0, std::memory_order_relaxed);
    block_->hold.store(0, std::memory_order_release);
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }

  void wait_for_phase(RankPhase phase) const {
    wait_until([&] { return word().phase == phase; },
               format("the rank's phase is {}, now {}", static_cast<int>(phase), static_cast<int>(word().phase)));
  }

  // The values of a slot, or an error text when its checksum or its entries are wrong.
  struct Slot {
    std::uint64_t step = 0;
    std::uint64_t attempt = 0;
    std::vector<std::pair<std::string, std::string>> values;
    std::string fault;
  };
  Slot slot(std::uint8_t index) const {
    const char* const start =
        reinterpret_cast<const char*>(block_) + block_->slot_offset + index * std::uint64_t{block_->slot_bytes};
    SlotHeader header;
    std::memcpy(&header, start, sizeof header);
    Slot slot{.step = header.step, .attempt = header.attempt, .values = {}, .fault = {}};
    if (header.bytes > block_->slot_bytes - sizeof header) {
      slot.fault = "more bytes than there are";
      return slot;
    }
    const char* at = start + sizeof header;
    const char* const end = at + header.bytes;
    if (XXH3_64bits(at, header.bytes) != header.checksum) slot.fault = "wrong checksum";
    for (std::uint32_t entry = 0; entry < header.entries && slot.fault.empty(); ++entry) {
      std::uint16_t name_bytes = 0;
      std::uint64_t value_bytes = 0;
      std::memcpy(&name_bytes, at, sizeof name_bytes);
      std::memcpy(&value_bytes, at + sizeof name_bytes + name_bytes, sizeof value_bytes);
      const char* const value = at + sizeof name_bytes + name_bytes + sizeof value_bytes;
      slot.values.emplace_back(std::string(at + sizeof name_bytes, name_bytes), std::string(value, value_bytes));
      at = value + value_bytes;
    }
    if (slot.fault.empty() && at != end) slot.fault = "bytes that belong to no entry";
    return slot;
  }

 private:
  // An order to rebuild stands until it is carried out.
  void store_order(GateOrder order) {
    if (order == GateOrder::go_on && rebuild_is_pending(*block_)) order = GateOrder::rebuild;
    block_->order.store(static_cast<std::uint32_t>(order), std::memory_order_relaxed);
  }
  void ring() {
    block_->wake_word.fetch_add(1);
    ::syscall(SYS_futex, &block_->wake_word, FUTEX_WAKE, 0x7fffffff, nullptr, nullptr, 0);
  }

  std::uint64_t bytes_;
  int descriptor_ = -1;
  ControlBlock* block_ = nullptr;
  std::uint32_t hold_number_ = 0;
};

class ScriptedSidecar {
 public:
  explicit ScriptedSidecar(const ControlMemory::Shape& shape) : control(shape) { listen(); }
  ScriptedSidecar() : ScriptedSidecar(ControlMemory::Shape{}) {}
  ~ScriptedSidecar() {
    control.release(GateOrder::stop);
    hang_up();
    stop_listening();
  }
  ScriptedSidecar(const ScriptedSidecar&) = delete;
  ScriptedSidecar& operator=(const ScriptedSidecar&) = delete;

  std::string socket_path() const { return folder_.path() + "/sidecar.sock"; }
  // Where the checkpoints of the scripted job lie; told to the rank with the control block.
  std::string job_folder = "/nowhere";
  std::uint32_t attempt = 0;  // of the frames that are sent
  ControlMemory control;

  void listen() {
    listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, socket_path().c_str(), sizeof address.sun_path - 1);
    ::unlink(address.sun_path);
    if (::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(listener_, 8) != 0) {
      throw std::runtime_error("the scripted sidecar cannot listen");
    }
  }
  void stop_listening() {
    if (listener_ >= 0) ::close(std::exchange(listener_, -1));
    ::unlink(socket_path().c_str());
  }
  void hang_up() {
    if (connection_ >= 0) ::close(std::exchange(connection_, -1));
    if (passed_ >= 0) ::close(std::exchange(passed_, -1));
  }
  // A sidecar that was killed: its sockets end, the control block stays as it is.
  void die() {
    hang_up();
    stop_listening();
  }

  void accept() {
    hang_up();
    wait_readable(listener_, "a rank connects");
    connection_ = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    encoder_ = FrameEncoder();
    decoder_ = FrameDecoder();
  }

  void send(const LocalMessage& message, int passed_descriptor = -1) {
    const EncodedMessage encoded = encode_local_message(message);
    send_bytes(*encoder_.encode(static_cast<std::uint16_t>(encoded.kind), attempt, encoded.body), passed_descriptor);
  }
  void send_bytes(std::string bytes, int passed_descriptor = -1) {
    iovec part{.iov_base = bytes.data(), .iov_len = bytes.size()};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
    if (passed_descriptor >= 0) {
      header.msg_control = room;
      header.msg_controllen = sizeof room;
      cmsghdr* const rights = CMSG_FIRSTHDR(&header);
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(rights), &passed_descriptor, sizeof(int));
    }
    if (::sendmsg(connection_, &header, MSG_NOSIGNAL) != static_cast<ssize_t>(bytes.size()))
      throw std::runtime_error("the rank does not read");
  }

  struct Arrival {
    std::uint32_t attempt = 0;
    LocalMessage message;
  };
  Arrival next(std::string_view expected) {
    for (;;) {
      auto frame = decoder_.next();
      if (!frame) throw std::runtime_error("the rank sent a broken frame: " + std::string(to_string(frame.error())));
      if (*frame) {
        Result<LocalMessage> message = decode_local_message((*frame)->header.kind, (*frame)->body);
        if (!message) throw std::runtime_error("the rank sent nonsense: " + message.error().message);
        return {.attempt = (*frame)->header.attempt, .message = *std::move(message)};
      }
      if (!read_more(expected))
        throw std::runtime_error("the rank hung up instead of sending " + std::string(expected));
    }
  }
  template <typename Message>
  Message expect(std::string_view name) {
    Arrival arrival = next(name);
    last_attempt_seen = arrival.attempt;
    if (auto* message = std::get_if<Message>(&arrival.message)) return std::move(*message);
    throw std::runtime_error(
        format("expected {}, the rank sent kind {}", name, static_cast<int>(local_kind_of(arrival.message))));
  }
  // True when the rank has closed the connection and sent nothing more.
  bool sees_end() { return !read_more("the end of the connection"); }
  std::uint32_t last_attempt_seen = 0;
  int passed_descriptor() const { return passed_; }

  void send_control() {
    send(
        ControlMessage{
            .slot_bytes = control->slot_bytes, .incarnation = control->incarnation, .checkpoint_dir = job_folder},
        control.descriptor());
  }
  HelloMessage greet() {
    accept();
    HelloMessage hello = expect<HelloMessage>("hello");
    send_control();
    return hello;
  }
  HelloMessage welcome() {
    HelloMessage hello = greet();
    send(WelcomeMessage{});
    return hello;
  }
  // Restores nothing: the rank begins at step 1.
  RegisteredMessage begin(std::uint32_t new_attempt = 1) {
    RegisteredMessage registered = expect<RegisteredMessage>("registered");
    send(OfferMessage{});
    expect<LoadedMessage>("loaded");
    attempt = new_attempt;
    send(TakeMessage{.attempt = new_attempt, .path = "", .step = 0, .manifest_hash = ""});
    return registered;
  }

 private:
  static void wait_readable(int descriptor, std::string_view what) {
    pollfd readable{.fd = descriptor, .events = POLLIN, .revents = 0};
    if (::poll(&readable, 1, kPatienceMilliseconds) != 1)
      throw std::runtime_error("waited in vain until " + std::string(what));
  }
  bool read_more(std::string_view expected) {
    wait_readable(connection_, format("the rank sends {}", expected));
    char bytes[65536];
    iovec part{.iov_base = bytes, .iov_len = sizeof bytes};
    alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))];
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = room;
    header.msg_controllen = sizeof room;
    const ssize_t read = ::recvmsg(connection_, &header, MSG_CMSG_CLOEXEC);
    if (const cmsghdr* rights = CMSG_FIRSTHDR(&header); read > 0 && rights != nullptr) {
      if (passed_ >= 0) ::close(passed_);
      std::memcpy(&passed_, CMSG_DATA(rights), sizeof(int));
    }
    if (read <= 0) return false;
    decoder_.feed(std::string_view(bytes, static_cast<std::size_t>(read)));
    return true;
  }

  TemporaryFolder folder_;
  int listener_ = -1;
  int connection_ = -1;
  int passed_ = -1;
  FrameEncoder encoder_;
  FrameDecoder decoder_;
};

}  // namespace rekindle::runtime::testing
