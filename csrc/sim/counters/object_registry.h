// Objects that a C API hands out as pointers: a pointer that was given back, or never handed out, finds
// nothing. Any thread; who found an object keeps it alive, but may find it shut down.
#pragma once
#include <map>
#include <memory>
#include <mutex>

namespace sim {

// Key: what may have one object only (a context, a device).
template <typename Key, typename T>
class Registry {
 public:
  // nullptr: this key has one already.
  template <typename... Args>
  T* add(const Key& key, Args&&... args) {
    const std::lock_guard lock(x_mutex);
    auto& slot = x_objects[key];
    if (slot) return nullptr;
    slot = std::make_shared<T>(std::forward<Args>(args)...);
    return slot.get();
  }

  // nullptr: none has it.
  std::shared_ptr<T> of(const Key& key) {
    const std::lock_guard lock(x_mutex);
    const auto at = x_objects.find(key);
    return at == x_objects.end() ? nullptr : at->second;
  }

  std::shared_ptr<T> find(const void* handle) {
    const std::lock_guard lock(x_mutex);
    for (const auto& [key, object] : x_objects)
      if (object.get() == handle) return object;
    return nullptr;
  }

  // The handle is given back.
  std::shared_ptr<T> take(const void* handle) {
    const std::lock_guard lock(x_mutex);
    for (auto at = x_objects.begin(); at != x_objects.end(); ++at)
      if (at->second.get() == handle) {
        auto object = std::move(at->second);
        x_objects.erase(at);
        return object;
      }
    return nullptr;
  }

  // Every object is shut down before it goes.
  void clear() {
    std::map<Key, std::shared_ptr<T>> gone;
    {
      const std::lock_guard lock(x_mutex);
      gone.swap(x_objects);
    }
    for (const auto& [key, object] : gone)
      if constexpr (requires { object->shut_down(); }) object->shut_down();
  }

 private:
  std::mutex x_mutex;  // guards the map
  std::map<Key, std::shared_ptr<T>> x_objects;
};

}  // namespace sim
