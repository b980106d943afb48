#include "common/base/enum_names.h"

#include <gtest/gtest.h>

namespace rekindle {
namespace {

enum class Color { red, dark_blue, green };
constexpr auto enum_names(Color) {
  return std::to_array<EnumName<Color>>(
      {{Color::red, "red"}, {Color::dark_blue, "dark-blue"}, {Color::green, "green"}});
}

TEST(EnumNames, EveryValueIsWrittenAndReadByItsName) {
  for (const Color color : {Color::red, Color::dark_blue, Color::green}) {
    EXPECT_EQ(parse_enum<Color>(to_string(color)), color);
  }
  EXPECT_EQ(to_string(Color::dark_blue), "dark-blue");
}

TEST(EnumNames, AnUnknownNameIsNoValue) {
  EXPECT_EQ(parse_enum<Color>("blue"), std::nullopt);
  EXPECT_EQ(parse_enum<Color>(""), std::nullopt);
  EXPECT_EQ(parse_enum<Color>("Red"), std::nullopt);
}

TEST(EnumNames, ANumberWithoutAnEnumeratorIsUnknown) {
  EXPECT_EQ(to_string(static_cast<Color>(3)), "unknown");
  EXPECT_EQ(to_string(static_cast<Color>(-1)), "unknown");
}

TEST(EnumNames, TheListHasEveryNameInOrder) { EXPECT_EQ(list_enum_names<Color>(), "red, dark-blue, green"); }

// Numbers that begin at 1, and have a gap.
enum class Kind : std::uint8_t { open = 1, close = 2, data = 5 };
constexpr auto enum_names(Kind) {
  return std::to_array<EnumName<Kind>>({{Kind::open, "open"}, {Kind::close, "close"}, {Kind::data, "data"}});
}

TEST(EnumNames, NumbersMayBeginAnywhereAndHaveGaps) {
  EXPECT_TRUE(every_value_has_one_name<Kind>());
  EXPECT_EQ(parse_enum<Kind>("data"), Kind::data);
}

// Every number that its type can hold lies between these two, and none beyond them.
enum class Bound : std::uint8_t { lowest = 0, highest = 255 };
constexpr auto enum_names(Bound) {
  return std::to_array<EnumName<Bound>>({{Bound::lowest, "lowest"}, {Bound::highest, "highest"}});
}

TEST(EnumNames, NumbersMayReachTheBoundsOfTheirType) {
  EXPECT_TRUE(every_value_has_one_name<Bound>());
  EXPECT_EQ(to_string(Bound::highest), "highest");
}

enum class LastIsMissing { one, two, three };
constexpr auto enum_names(LastIsMissing) {
  return std::to_array<EnumName<LastIsMissing>>({{LastIsMissing::one, "one"}, {LastIsMissing::two, "two"}});
}

enum class FirstIsMissing { one, two, three };
constexpr auto enum_names(FirstIsMissing) {
  return std::to_array<EnumName<FirstIsMissing>>({{FirstIsMissing::two, "two"}, {FirstIsMissing::three, "three"}});
}

enum class MiddleIsMissing { one, two, three };
constexpr auto enum_names(MiddleIsMissing) {
  return std::to_array<EnumName<MiddleIsMissing>>({{MiddleIsMissing::one, "one"}, {MiddleIsMissing::three, "three"}});
}

TEST(EnumNames, AValueWithoutANameIsSeen) {
  EXPECT_FALSE(every_value_has_one_name<LastIsMissing>());
  EXPECT_FALSE(every_value_has_one_name<FirstIsMissing>());
  EXPECT_FALSE(every_value_has_one_name<MiddleIsMissing>());
}

enum class NamedTwice { one, two };
constexpr auto enum_names(NamedTwice) {
  return std::to_array<EnumName<NamedTwice>>(
      {{NamedTwice::one, "one"}, {NamedTwice::two, "two"}, {NamedTwice::two, "zwei"}});
}

enum class SameName { one, two };
constexpr auto enum_names(SameName) {
  return std::to_array<EnumName<SameName>>({{SameName::one, "one"}, {SameName::two, "one"}});
}

enum class EmptyName { one, two };
constexpr auto enum_names(EmptyName) {
  return std::to_array<EnumName<EmptyName>>({{EmptyName::one, "one"}, {EmptyName::two, ""}});
}

TEST(EnumNames, ANameThatIsNotOneOfItsOwnIsSeen) {
  EXPECT_FALSE(every_value_has_one_name<NamedTwice>());
  EXPECT_FALSE(every_value_has_one_name<SameName>());
  EXPECT_FALSE(every_value_has_one_name<EmptyName>());
}

}  // namespace
}  // namespace rekindle
