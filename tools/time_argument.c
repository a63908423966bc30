/* tools/time_argument.c -- see tools/time_argument.h. */
#include "tools/time_argument.h"

#include <stdbool.h>
#include <stddef.h>

#include "tools/report.h"

#define NS_PER_S UINT64_C(1000000000)

enum { SECONDS_DIGITS_MAX = 10, FRACTION_DIGITS_MAX = 9, YEAR_FIRST = 1970 };

/* Exactly so many digits; NULL: there are not. */
static const char *take_digits(const char *text, size_t count,
                               uint64_t *number_out)
{
    *number_out = 0;
    for (size_t index = 0; index < count; index++) {
        if (text[index] < '0' || text[index] > '9') {
            return NULL;
        }
        *number_out = *number_out * 10 + (uint64_t)(text[index] - '0');
    }
    return text + count;
}

/* The digits and what stands behind them. */
static const char *take_field(const char *text, size_t digits, char behind,
                              uint64_t *number_out)
{
    text = take_digits(text, digits, number_out);
    return text == NULL || *text != behind ? NULL : text + 1;
}

static bool is_leap(uint64_t year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static uint64_t days_in(uint64_t year, uint64_t month)
{
    static const uint8_t days[] = {31, 28, 31, 30, 31, 30,
                                   31, 31, 30, 31, 30, 31};

    return days[month - 1] + (month == 2 && is_leap(year) ? 1u : 0u);
}

static uint64_t days_since_1970(uint64_t year, uint64_t month, uint64_t day)
{
    uint64_t days = day - 1;

    for (uint64_t before = YEAR_FIRST; before < year; before++) {
        days += is_leap(before) ? 366 : 365;
    }
    for (uint64_t before = 1; before < month; before++) {
        days += days_in(year, before);
    }
    return days;
}

/* "2026-11-30T14:30:00"; NULL: it is not. */
static const char *take_date(const char *text, uint64_t *seconds_out)
{
    uint64_t year;
    uint64_t month = 0;
    uint64_t day = 0;
    uint64_t hour = 0;
    uint64_t minute = 0;
    uint64_t second = 0;

    text = take_field(text, 4, '-', &year);
    text = text == NULL ? NULL : take_field(text, 2, '-', &month);
    text = text == NULL ? NULL : take_field(text, 2, 'T', &day);
    text = text == NULL ? NULL : take_field(text, 2, ':', &hour);
    text = text == NULL ? NULL : take_field(text, 2, ':', &minute);
    text = text == NULL ? NULL : take_digits(text, 2, &second);
    if (text == NULL || year < YEAR_FIRST || month < 1 || month > 12 ||
        day < 1 || day > days_in(year, month) || hour > 23 || minute > 59 ||
        second > 59) {
        return NULL;
    }
    *seconds_out =
        ((days_since_1970(year, month, day) * 24 + hour) * 60 + minute) * 60 +
        second;
    return text;
}

/* "@1796049000"; NULL: it is not. */
static const char *take_seconds(const char *text, uint64_t *seconds_out)
{
    size_t digits = 0;

    while (digits < SECONDS_DIGITS_MAX && text[1 + digits] >= '0' &&
           text[1 + digits] <= '9') {
        digits++;
    }
    return digits == 0 ? NULL : take_digits(text + 1, digits, seconds_out);
}

/* ".25", if there is a point; NULL: nothing, or too much, is behind it. */
static const char *take_fraction(const char *text, uint64_t *ns_out)
{
    uint64_t unit = NS_PER_S / 10;
    size_t digits = 0;

    *ns_out = 0;
    if (*text != '.') {
        return text;
    }
    for (text++; *text >= '0' && *text <= '9'; text++, digits++) {
        *ns_out += (uint64_t)(*text - '0') * unit;
        unit /= 10;
    }
    return digits == 0 || digits > FRACTION_DIGITS_MAX ? NULL : text;
}

int time_argument(const char *name, const char *text, uint64_t *time_ns_out)
{
    const bool in_seconds = text[0] == '@';
    uint64_t seconds = 0;
    uint64_t ns = 0;
    const char *rest =
        in_seconds ? take_seconds(text, &seconds) : take_date(text, &seconds);

    rest = rest == NULL ? NULL : take_fraction(rest, &ns);
    if (rest != NULL && !in_seconds) {
        rest = *rest == 'Z' ? rest + 1 : NULL;
    }
    if (rest == NULL || *rest != '\0' || seconds + ns == 0) {
        return report_usage("--%s: \"%s\" is no time like "
                            "2026-11-30T14:30:00Z or @1796049000",
                            name, text);
    }
    *time_ns_out = seconds > (UINT64_MAX - ns) / NS_PER_S
                       ? UINT64_MAX
                       : seconds * NS_PER_S + ns;
    return EXIT_DONE;
}
