// Writer and Reader: values as bytes for the network, little-endian; the reader trusts no length or count that it reads.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace fccl::core {

// Appends values to a string.
class Writer {
 public:
  template <std::integral T>
  void number(T value) {
    auto rest = static_cast<std::make_unsigned_t<T>>(value);
    for (size_t i = 0; i < sizeof(T); ++i) bytes_.push_back(static_cast<char>((uint64_t{rest} >> (8 * i)) & 0xff));
  }
  void raw(std::string_view bytes) { bytes_.append(bytes); }
  // At most 65535 bytes; the rest is cut.
  void text(std::string_view text) {
    text = text.substr(0, 0xffff);
    number(static_cast<uint16_t>(text.size()));
    raw(text);
  }
  // Takes a byte for each seven bits of the value.
  void small_number(uint64_t value) {
    for (; value >= 0x80; value >>= 7) number(static_cast<uint8_t>(0x80 | (value & 0x7f)));
    number(static_cast<uint8_t>(value));
  }
  // At most 255 bytes; the rest is cut.
  void short_text(std::string_view text) {
    text = text.substr(0, 0xff);
    number(static_cast<uint8_t>(text.size()));
    raw(text);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Takes values off the front of bytes that it does not own. A value that does not fit makes it bad for good, and every value
// after that is zero or empty: read all, then ask `complete`.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  template <std::integral T>
  T number() {
    const std::string_view taken = raw(sizeof(T));
    uint64_t value = 0;
    for (size_t i = 0; i < taken.size(); ++i) value |= uint64_t{static_cast<unsigned char>(taken[i])} << (8 * i);
    return static_cast<T>(value);
  }
  std::string_view raw(size_t size) {
    if (size > rest_.size()) {
      good_ = false;
      rest_ = {};
    }
    const std::string_view taken = rest_.substr(0, good_ ? size : 0);
    rest_.remove_prefix(taken.size());
    return taken;
  }
  // A number in more bytes than it takes, or in more than 64 bits, does not fit.
  uint64_t small_number() {
    uint64_t value = 0;
    for (int bit = 0; bit < 64; bit += 7) {
      const auto byte = number<uint8_t>();
      value |= uint64_t{byte & 0x7fu} << bit;
      if (byte < 0x80 && ((byte == 0 && bit > 0) || (byte > 1 && bit == 63))) good_ = false;
      if (byte < 0x80) return value;
    }
    good_ = false;
    return 0;
  }
  // The same; negative numbers and those above INT32_MAX do not fit either.
  int32_t small_int() {
    const uint64_t value = small_number();
    if (value > INT32_MAX) good_ = false;
    return good_ ? static_cast<int32_t>(value) : 0;
  }
  std::string text() { return std::string(raw(number<uint16_t>())); }
  std::string short_text() { return std::string(raw(number<uint8_t>())); }

  // True as long as every value that was asked for was there.
  bool good() const { return good_; }
  // True if that holds and nothing is left.
  bool complete() const { return good_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool good_ = true;
};

}  // namespace fccl::core
