// The last known state of all objects of one kind. One StoreWriter (movable) is fed with
// StoreEvents, many StoreReaders (copyable) look. Both belong to one thread (the owner thread of
// the operator); an object that was handed out as a shared pointer stays as it was, whatever comes
// later.
//
// Guarantees: between Init and InitDone readers see the state from before; at InitDone it is
// replaced at once. ready() is false before the first InitDone: a caller that decides over absence
// waits for it. Objects that vanished while no watch was open are reported by InitDone.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/assert.h"
#include "operator/controller/store_event.h"

namespace rekindle::op {

// What one event did to one object. before is null for a new one, after is null for one that is
// gone. Two different uids in before and after: the name was deleted and used again while we were
// not looking.
template <typename T>
struct StoreChange {
  ObjectKey key;
  std::shared_ptr<const T> before;
  std::shared_ptr<const T> after;
};

namespace store_detail {

template <typename T>
struct Contents {
  using Objects = std::map<ObjectKey, std::shared_ptr<const T>>;

  std::function<std::vector<std::string>(const T&)> groups_of;
  bool ready = false;
  Objects objects;
  std::map<std::string, std::set<ObjectKey>, std::less<>> groups;
};

}  // namespace store_detail

template <typename T>
class StoreReader {
 public:
  bool ready() const { return contents_->ready; }
  std::size_t size() const { return contents_->objects.size(); }

  // Null when there is none.
  std::shared_ptr<const T> get(const ObjectKey& key) const {
    const auto found = contents_->objects.find(key);
    return found == contents_->objects.end() ? nullptr : found->second;
  }

  // All objects, ordered by namespace and name.
  std::vector<std::shared_ptr<const T>> all() const {
    std::vector<std::shared_ptr<const T>> objects;
    objects.reserve(size());
    for (const auto& [key, object] : contents_->objects) objects.push_back(object);
    return objects;
  }

  // The objects of one group, as the writer's groups_of named it ("team-a/digits": the pods of a
  // job), in the same order.
  std::vector<std::shared_ptr<const T>> group(std::string_view name) const {
    std::vector<std::shared_ptr<const T>> objects;
    const auto found = contents_->groups.find(name);
    if (found == contents_->groups.end()) return objects;
    for (const ObjectKey& key : found->second) objects.push_back(contents_->objects.at(key));
    return objects;
  }

 private:
  template <typename>
  friend class StoreWriter;
  explicit StoreReader(std::shared_ptr<const store_detail::Contents<T>> contents) : contents_(std::move(contents)) {}

  std::shared_ptr<const store_detail::Contents<T>> contents_;
};

template <typename T>
class StoreWriter {
 public:
  // `groups_of` names the groups that an object is found under (StoreReader::group); empty: none.
  explicit StoreWriter(std::function<std::vector<std::string>(const T&)> groups_of = {})
      : contents_(std::make_shared<Contents>()) {
    contents_->groups_of = std::move(groups_of);
  }
  StoreWriter(StoreWriter&&) noexcept = default;
  StoreWriter& operator=(StoreWriter&&) noexcept = default;

  StoreReader<T> reader() const { return StoreReader<T>(contents_); }

  // Applies one event and returns what it changed. InitDone returns every object of the list, those
  // that vanished included: a controller looks at each again, since anything may have happened
  // meanwhile.
  std::vector<StoreChange<T>> apply(StoreEvent<T> event) {
    return std::visit([this](auto&& one) { return on(std::move(one)); }, std::move(event));
  }

 private:
  using Contents = store_detail::Contents<T>;
  using Changes = std::vector<StoreChange<T>>;

  Changes on(Init&&) {
    listing_ = true;
    incoming_.clear();
    return {};
  }

  Changes on(InitApply<T>&& event) {
    RK_ASSERT(listing_);
    incoming_[std::move(event.key)] = std::make_shared<const T>(std::move(event.object));
    return {};
  }

  Changes on(InitKeep&& event) {
    RK_ASSERT(listing_);
    const auto found = contents_->objects.find(event.key);
    if (found != contents_->objects.end()) incoming_[std::move(event.key)] = found->second;
    return {};
  }

  Changes on(InitDone&&) {
    RK_ASSERT(listing_);
    listing_ = false;
    typename Contents::Objects outgoing = std::exchange(contents_->objects, std::exchange(incoming_, {}));
    contents_->groups.clear();
    contents_->ready = true;
    Changes changes;
    changes.reserve(contents_->objects.size());
    for (const auto& [key, object] : contents_->objects) {
      join_groups(key, *object);
      const auto before = outgoing.find(key);
      changes.push_back({key, before == outgoing.end() ? nullptr : before->second, object});
    }
    for (auto& [key, object] : outgoing) {
      if (!contents_->objects.contains(key)) changes.push_back({key, object, nullptr});
    }
    return changes;
  }

  Changes on(Apply<T>&& event) {
    RK_ASSERT(!listing_);
    std::shared_ptr<const T>& place = contents_->objects[event.key];
    std::shared_ptr<const T> before = std::exchange(place, std::make_shared<const T>(std::move(event.object)));
    if (before) leave_groups(event.key, *before);
    join_groups(event.key, *place);
    return {{std::move(event.key), std::move(before), place}};
  }

  Changes on(Delete<T>&& event) {
    RK_ASSERT(!listing_);
    const auto found = contents_->objects.find(event.key);
    std::shared_ptr<const T> before;
    if (found != contents_->objects.end()) {
      before = found->second;
      leave_groups(event.key, *before);
      contents_->objects.erase(found);
    }
    if (event.last) before = std::make_shared<const T>(std::move(*event.last));
    return {{std::move(event.key), std::move(before), nullptr}};
  }

  void join_groups(const ObjectKey& key, const T& object) {
    if (!contents_->groups_of) return;
    for (std::string& group : contents_->groups_of(object)) contents_->groups[std::move(group)].insert(key);
  }

  void leave_groups(const ObjectKey& key, const T& object) {
    if (!contents_->groups_of) return;
    for (const std::string& group : contents_->groups_of(object)) {
      const auto found = contents_->groups.find(group);
      if (found == contents_->groups.end()) continue;
      found->second.erase(key);
      if (found->second.empty()) contents_->groups.erase(found);
    }
  }

  std::shared_ptr<Contents> contents_;
  bool listing_ = false;
  typename Contents::Objects incoming_;
};

}  // namespace rekindle::op
