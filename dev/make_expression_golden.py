"""Make the golden file of expressions: what PySpark answers, once, so that CI needs neither Spark nor Java.

    python -m venv spark && spark/bin/pip install pyspark==4.2.0 pyarrow
    spark/bin/python dev/make_expression_golden.py

Writes `tests/golden/expressions/rows.json` (schema and edge rows) and `golden.jsonl`, one line an expression:

    {"e": "i + j", "t": ["int"], "r": [[3, null, {"!": "ARITHMETIC_OVERFLOW"}, ...], ...], "m": [0, 0, 1, 1]}

`t` holds the result type with ANSI on and, where it differs, off; `m` says for each mode of `MODES` which list of `r`
it gave, one entry a row. A mode in which Spark refuses the expression has an object `{"!": class}` in place of the
list. Values: numbers as JSON, decimals as text, dates as days, timestamps as microseconds since the epoch, binaries as
hex, NaN and the infinities as text, arrays as lists, maps as lists of pairs, structs as lists.

Takes about ten minutes; nothing here runs in CI.
"""

from __future__ import annotations

import datetime as dt
import json
import logging
import math
import re
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

OUT = Path(__file__).resolve().parent.parent / "tests" / "golden" / "expressions"
MODES = [("true", "UTC"), ("true", "America/New_York"), ("false", "UTC"), ("false", "America/New_York")]

COLUMNS = {
    "id": "int",
    "i": "int",
    "j": "int",
    "l": "bigint",
    "by": "tinyint",
    "sh": "smallint",
    "f": "float",
    "d": "double",
    "e": "double",
    "dec": "decimal(10,2)",
    "dec2": "decimal(38,10)",
    "s": "string",
    "p": "string",
    "num": "string",
    "dt": "date",
    "ts": "timestamp",
    "ntz": "timestamp_ntz",
    "b": "boolean",
    "arr": "array<int>",
    "m": "map<string,int>",
    "st": "struct<x:int,y:string>",
    "bin": "binary",
}
# Written as Spark literals; every timestamp names its zone, so that the rows are the same instants in every mode.
# A blank line ends a row.
ROWS = r"""
1 | 1 | 2 | 3 | 4 | 5 | 1.5 | 2.5 | 1.0 | 12.34 | 1.5 | 'abc' | 'a%' | '12' | '2024-02-29' |
'2024-03-10 12:34:56.789012Z' | '2024-03-10 02:30:00' | true | array(1, 2, 3) | map('a', 1) |
named_struct('x', 1, 'y', 'x') | X'0102'

2 | null | null | null | null | null | null | null | null | null | null | null | null | null | null | null | null |
null | null | null | null | null

3 | 2147483647 | 0 | 9223372036854775807 | 127 | 32767 | 3.4028235e38 | 1.7976931348623157e308 | 0.0 | 99999999.99 |
9999999999999999999999999999.9999999999 | 'straße' | '%ß%' | '2147483648' | '9999-12-31' |
'9999-12-31 23:59:59.999999Z' | '9999-12-31 23:59:59.999999' | false | array() | map() |
named_struct('x', null, 'y', null) | X''

4 | -2147483648 | -1 | -9223372036854775808 | -128 | -32768 | -3.4028235e38 | -1.7976931348623157e308 | -0.0 |
-99999999.99 | -9999999999999999999999999999.9999999999 | '' | '' | '-2147483648' | '0001-01-01' |
'0001-01-01 00:00:00Z' | '0001-01-01 00:00:00' | false | array(null) | map('b', null) |
named_struct('x', -1, 'y', '') | X'FF'

5 | 0 | 0 | 0 | 0 | 0 | 'NaN' | 'NaN' | 'NaN' | 0.00 | 0 | ' abc ' | '_bc' | ' 42 ' | '1582-10-04' |
'1582-10-04 00:00:00Z' | '1582-10-15 00:00:00' | true | array(1, null, 2) | map('a', null) |
named_struct('x', 0, 'y', null) | X'00'

6 | -7 | 3 | -7 | -7 | -7 | '-0.0' | '-0.0' | 0.0 | -0.05 | -0.0000000001 | 'a.b.c' | 'a.b%' | '1e3' | '1969-12-31' |
'1969-12-31 23:59:59.5Z' | '1969-12-31 23:59:59.999999' | null | array(5) | map('x', 9) |
named_struct('x', 7, 'y', 'a.b') | X'616263'

7 | 7 | -3 | 4294967296 | 7 | 300 | 'Infinity' | 'Infinity' | '-Infinity' | 2.50 | 2.5 | 'ABC' | 'abc' | 'NaN' |
'2024-11-03' | '2024-11-03 05:30:00Z' | '2024-11-03 01:30:00' | true | array(2, 2) | map('a', 5, 'b', 6) |
named_struct('x', 2, 'y', 'ABC') | X'414243'

8 | 42 | 5 | 1700000000 | 10 | -1 | 0.1 | 0.1 | 0.30000000000000004 | 0.01 | 123456789.0123456789 | '日本語 text' |
'%text' | '2024-02-30' | '1970-01-01' | '1970-01-01 00:00:00Z' | '1970-01-01 00:00:00' | false | array(42) |
map('日', 1) | named_struct('x', 42, 'y', 'y') | X'E697A5'

9 | 100 | 100 | -1 | -1 | 100 | -2.5 | -2.5 | 2.5 | -2.50 | -2.5 | 'a\tb\n' | 'a_b%' | 'true' | '1900-01-01' |
'1883-11-18 17:00:00Z' | '1883-11-18 12:00:00' | true | array(100, 100) | map('true', 1) |
named_struct('x', 100, 'y', 'true') | X'6109620A'

10 | 3 | 2 | 86400 | 3 | 2 | 3.5 | 3.5 | 1e-10 | 3.14 | 3.1415926536 | '2024-03-10' | '2024%' |
'2024-03-10 02:30:00' | '2024-03-10' | '2024-03-10 07:00:00Z' | '2024-03-10 03:00:00' | true | array(3, 1, 2) |
map('k', 3) | named_struct('x', 3, 'y', '2024') | X'32303234'

11 | 12 | 4 | -86401 | -3 | 12 | 1e10 | 1e20 | 1e-3 | 1.00 | 1e10 | "It's 100% _done_\\" | '%\\%%' | '12.5' |
'2000-02-29' | '2038-01-19 03:14:07.000001Z' | '2038-01-19 03:14:07.000001' | false | array(-1, 0) | map('', 0) |
named_struct('x', 12, 'y', 'It') | X'C3'

12 | -1 | 31 | 9007199254740993 | 64 | 31 | 16777217 | 9007199254740992 | 1e-320 | 7.77 | 0.5 | 't' | 'T' |
'2024-03-10T10:00:00Z' | '12345-06-07' | '12345-06-07 08:09:10Z' | '-0044-03-15 12:00:00' | null | array(null, null) |
map('n', null) | named_struct('x', 31, 'y', 't') | X'74'
"""

NUMBERS = ["i", "l", "by", "sh", "f", "d", "dec", "dec2"]
SCALARS = [*NUMBERS, "s", "num", "dt", "ts", "ntz", "b", "bin"]
LITERALS = {
    "i": ["7", "1.5", "-7L", "2147483648", "1e0", "'42'", "0"],
    "l": ["4294967296", "1.5", "1e3", "'-1'", "9223372036854775807"],
    "by": ["7", "300", "-1L", "6.5", "1e0"],
    "sh": ["100", "40000", "2.5"],
    "f": ["0.1", "1.5", "0.1F", "1", "double('NaN')", "'1.5'"],
    "d": ["0.1", "1", "double('NaN')", "0", "-0.0D", "'2.5'", "9007199254740993"],
    "dec": ["2.5", "1", "3.145", "12.340", "1e1", "'2.50'", "100000000000"],
    "dec2": ["2.5", "0.00000000005", "123456789.0123456789"],
    "s": ["'abc'", "''", "'b'"],
    "num": ["12", "'12'", "1e3", "true"],
    "dt": [
        "'2024-02-29'",
        "date'1970-01-01'",
        "timestamp'2024-03-10 00:00:00'",
        "timestamp'2024-03-09 12:00:00Z'",
        "timestamp_ntz'2024-02-29 00:00:01'",
        "'2024-2-9'",
    ],
    "ts": [
        "'2024-03-10 03:00:00'",
        "timestamp'2024-03-10 07:00:00Z'",
        "date'1970-01-01'",
        "'2024-03-10T07:00:00Z'",
        "timestamp_ntz'2024-03-10 02:30:00'",
        "timestamp'2024-03-10 02:30:00'",
        "timestamp'2024-11-03 01:30:00'",
    ],
    "ntz": [
        "'2024-03-10 03:00:00'",
        "timestamp_ntz'1970-01-01 00:00:00'",
        "date'1970-01-01'",
        "timestamp'2024-03-10 07:00:00Z'",
    ],
    "b": ["true", "'false'", "null"],
    "bin": ["X'616263'", "'abc'", "X'00'"],
}
TYPES = [
    "boolean",
    "tinyint",
    "smallint",
    "int",
    "bigint",
    "float",
    "double",
    "decimal(10,2)",
    "decimal(3,1)",
    "decimal(38,18)",
    "string",
    "binary",
    "date",
    "timestamp",
    "timestamp_ntz",
]

HAND = r"""
true = 1 < 2
i = j is null
! b = b
not b and b
i | j & id
i ^ j & id
i | j ^ id & 3
1 + 2 || '3'
2 * 3 + 4 % 3 - 6 div 4
-i + j
- - i
-2147483648
-9223372036854775808
-(-128Y)
~i & 15
i & 6 = 6
1 = 1 = true
i is null and j is null or b
i between 0 and 10
i not between 0 and 10
d between 0 and 3
s between 'a' and 'b'
dt between '1900-01-01' and '2000-12-31'
ts between '2024-01-01' and timestamp'2024-12-31 00:00:00Z'
i in (7, null)
i in (1, 7, 42)
i not in (1, 7, 42)
i not in (1, null)
i in (j, 1)
i in (1.0, 7.5)
i in ('1', '7')
l in (1, 4294967296, -1L)
d in (double('NaN'), 2.5)
dec in (2.5, 3.14)
s in ('abc', 'ABC', null)
dt in ('2024-02-29', '1970-01-01')
ts in (timestamp'1970-01-01 00:00:00Z')
bin in (X'00', X'FF')
b in (true)
null in (1, 2)
i in (null)
s like p
s like 'a%'
s like '%b%'
s like '_bc'
s like 'a.b.c'
s like ''
s like '%'
s like '%\n'
s like 'a!%b' escape '!'
s like '%!_done!_%' escape '!'
s like '%\%%'
s like '%\\'
s like 'straß_'
s like '日__%'
s not like 'a%'
s ilike 'A%'
s ilike 'STRASSE'
s like any ('a%', '%c')
s like all ('a%', '%c')
s not like all ('a%', '%c')
s rlike '^a.c$'
s rlike 'b'
s rlike '\\d+'
s rlike '[A-Z]{2,}'
s regexp 'a|A'
regexp(s, 'a|A')
regexp_like(s, '^[a-c.]+$')
regexp_like(s, p)
rlike(s, 'b')
like(s, p)
ilike(s, 'A%')
num rlike '^[0-9]+$'
startswith(s, 'a')
startswith(s, '')
startswith(s, p)
endswith(s, 'c')
contains(s, 'b')
contains(s, p)
i <=> j
i <=> null
null <=> null
s <=> p
d <=> e
d <=> double('NaN')
b <=> true
b is true
b is not true
b is false
b is unknown
b is not unknown
i is distinct from j
i is not distinct from j
i is null
i is not null
arr is null
st.x is not null
m['a'] = 1
st.x > 1
st.y = 'ABC'
st.x in (1, 2, null)
isnull(s)
isnotnull(s)
equal_null(i, j)
isnan(d)
isnan(f)
isnan(null)
d = double('NaN')
d > double('Infinity')
d >= e
f = d
e = 0
d = -0.0
b and (i > 0)
b or (i > 0)
b and null
b or null
not b
b = true
b = (i > 0)
i > 0 and j > 0 and l > 0 and d > 0
i > 0 or j > 0 or l > 0 or d > 0
case when i > 0 then 'p' when i < 0 then 'n' end
case when i > 0 then 1 else 2.5 end
case i when 1 then 'one' when 7 then 'seven' else s end
case s when 'abc' then 1 when null then 2 end
case when b then i else l end
case when i = 0 then 0 else 10 div i end
if(i > 0, 'p', 'n')
if(b, 1, 2L)
if(i = 0, null, 100 / i)
coalesce(i, j)
coalesce(null, i, 5)
coalesce(dec, d)
nvl(i, 0)
nvl(s, p)
ifnull(s, p)
nvl2(i, 'set', 'unset')
nullif(i, j)
nullif(i, 7.0)
nullifzero(i)
zeroifnull(i)
greatest(i, j)
greatest(i, j, 5)
least(i, j)
greatest(d, e)
least(d, e)
greatest(s, p)
least(dt, date'2000-01-01')
greatest(dec, 1)
greatest(i, d)
i + j
i - j
i * j
i / j
i div j
i % j
pmod(i, j)
mod(i, j)
l + 1
l - 1
l * 2
i * 2
i + 1L
by + by
by * by
sh * sh
by - 1Y
i + l
i + d
i + dec
i + '1'
i * 1.5
f + f
f * d
f + 1
d + e
d * 2
d / e
d % e
d - 0.1
pmod(d, e)
dec + dec
dec - dec2
dec * dec
dec * dec2
dec2 * dec2
dec / dec
dec / dec2
dec2 / dec
dec + dec2
dec % 3
dec div 3
dec / 3
dec * 1.1
dec + 1
dec + l
dec - i
dec + d
dec * f
pmod(dec, 3)
dec2 + dec2
dec2 * 10
dec2 / 3
10 / 4
10 div 4
-7 % 3
-7 div 2
pmod(-7, 3)
7 % -3
1 / 0
1 div 0
1 % 0
1.0 / 0
1e0 / 0
i / 0
i % 0
d / 0
dec / 0
0 / 0
2147483647 + 1
9223372036854775807 + 1
9223372036854775808 + 1
127Y + 1Y
-i
-l
-by
-d
-dec
-(-l)
abs(i)
abs(l)
abs(by)
abs(d)
abs(f)
abs(dec)
negative(i)
positive(d)
sign(d)
sign(i)
sign(dec)
signum(d)
signum(i)
signum(num)
round(d)
round(d, 1)
round(d, -1)
round(f, 1)
round(dec, 1)
round(dec)
round(dec, -1)
round(dec, 3)
round(dec2, 2)
round(i, -1)
round(l, -2)
round(by, -1)
round(2.5)
round(-2.5)
round(3.5)
bround(d, 0)
bround(2.5)
bround(3.5)
bround(dec, 1)
bround(i, -1)
floor(d)
floor(f)
floor(dec)
floor(dec2)
floor(i)
floor(l)
ceil(d)
ceil(dec)
ceil(l)
ceiling(e)
sqrt(d)
sqrt(i)
exp(d)
exp(e)
ln(d)
ln(i)
log(d)
log(2, i)
log(i, 2)
log2(i)
log10(d)
log10(i)
pow(i, 2)
power(d, 2)
power(i, j)
power(d, 0.5)
i & j
i | j
i ^ j
l & i
by | by
~i
~by
~l
shiftleft(i, 1)
shiftleft(i, j)
shiftleft(l, 40)
shiftright(i, 1)
shiftright(l, j)
i << 2
l >> 3
length(s)
char_length(s)
character_length(s)
len(s)
len(bin)
length(bin)
length(i)
octet_length(s)
octet_length(bin)
upper(s)
lower(s)
ucase(s)
lcase('ÀÉÎ')
upper('ß')
lower('İ')
trim(s)
trim(num)
ltrim(s)
rtrim(s)
ltrim('a', s)
trim('a', s)
rtrim('c', s)
trim(both 'ac' from s)
trim(leading 'a' from s)
trim(trailing 'c' from s)
btrim(s)
btrim(s, 'a')
trim('\t x \n')
substring(s, 1, 2)
substring(s, 0, 2)
substring(s, -2, 2)
substring(s, -10, 3)
substring(s, 2)
substring(s, 2, -1)
substring(s, i, j)
substring(bin, 1, 1)
substring(bin, -1, 1)
substring(s from 2 for 2)
substr(s, 2)
left(s, 2)
left(s, -1)
left(bin, 1)
right(s, 2)
right(s, 0)
right(s, 100)
concat(s, p)
concat(s, p, num)
concat(s, i)
concat(bin, bin)
concat()
concat_ws('-', s, p)
concat_ws('-', s, null, p)
concat_ws(p, s, num)
concat_ws(',', s, i)
s || p
s || i || d
bin || bin
replace(s, 'b')
replace(s, 'b', 'xx')
replace(s, '', 'x')
lpad(s, 5, '*')
lpad(s, 5)
lpad(s, 2, '*')
lpad(s, 8, 'xy')
lpad(s, -1, 'x')
lpad(s, 5, '')
rpad(s, 5, '*')
rpad(s, 2, '*')
rpad(s, 8, 'xy')
repeat(s, 2)
repeat(s, 0)
repeat(s, -1)
space(3)
reverse(s)
instr(s, 'b')
instr(s, '')
instr(s, p)
locate('b', s)
locate('b', s, 3)
locate('', s)
locate('b', s, 0)
position('b' in s)
position('b', s, 2)
split_part(s, '.', 1)
split_part(s, '.', -1)
split_part(s, '.', 5)
split_part(s, '.', 0)
split_part(s, '', 1)
initcap(s)
initcap('hello wORLD-foo bar_baz')
hex(i)
hex(l)
hex(s)
hex(bin)
unhex('414')
unhex(hex(s))
unhex('xyz')
md5(s)
md5(bin)
sha2(s, 256)
sha2(s, 0)
sha2(s, 224)
sha2(s, 512)
sha2(s, 1)
year(dt)
year(ts)
year(ntz)
month(dt)
month(ts)
day(dt)
day(ts)
dayofmonth(ntz)
quarter(dt)
dayofweek(dt)
weekday(dt)
dayofyear(dt)
weekofyear(dt)
hour(ts)
minute(ts)
second(ts)
hour(ntz)
minute(ntz)
second(ntz)
hour(dt)
extract(year from dt)
extract(dow from dt)
extract(dayofweek_iso from dt)
extract(week from dt)
extract(doy from dt)
extract(quarter from ts)
extract(hour from ts)
date_part('minute', ts)
datepart('year', dt)
datepart('hour', ntz)
date_trunc('YEAR', ts)
date_trunc('QUARTER', ts)
date_trunc('month', ts)
date_trunc('WEEK', ts)
date_trunc('DAY', ts)
date_trunc('HOUR', ts)
date_trunc('minute', ts)
date_trunc('SECOND', ts)
date_trunc('MILLISECOND', ts)
date_trunc('DD', dt)
date_trunc('HOUR', ntz)
date_trunc('nonsense', ts)
trunc(dt, 'YEAR')
trunc(dt, 'YY')
trunc(dt, 'quarter')
trunc(dt, 'MM')
trunc(dt, 'week')
trunc(dt, 'DD')
trunc(ts, 'MONTH')
date_add(dt, 1)
date_add(dt, -1)
date_add(dt, by)
dateadd(dt, 1)
dateadd(dt, sh)
date_sub(dt, 1)
dt + 1
dt - 1
1 + dt
add_months(dt, 1)
add_months(dt, -1)
add_months(dt, 12)
add_months(date'2024-01-31', 1)
months_between(dt, date'2024-01-31')
months_between(ts, timestamp'2024-01-31 00:00:00Z')
months_between(ts, dt, false)
datediff(dt, date'2024-01-01')
datediff(ts, dt)
date_diff(dt, date'2024-01-01')
date_diff(ts, dt)
last_day(dt)
next_day(dt, 'MO')
next_day(dt, 'friday')
next_day(dt, 'nonsense')
dt + interval 1 month
dt - interval 1 month
dt + interval 1 day
dt - interval 2 days
dt + interval 1 week
dt + interval '1-2' year to month
dt + interval 1 hour
ts + interval 1 day
ts - interval 1 day
ts + interval 1 hour
ts + interval '1 02:03:04.5' day to second
ts + interval 90 minutes
ts + interval 1 month
ts - interval 1 year
ntz + interval 1 day
ntz + interval 1 month
ntz - interval 1 second
interval 1 day + ts
dt - date'2024-01-01' > interval 3 days
dt - interval 30 days < date'2024-01-01'
date_format(ts, 'yyyy-MM-dd')
date_format(dt, 'yyyy')
date_format(ts, 'yyyyMMdd')
date_format(ts, 'yyyy-MM-dd HH:mm:ss')
date_format(ts, 'yyyyMMdd HH:mm:ss.SSS')
date_format(ts, 'yyyy-MM')
date_format(ts, 'HH')
date_format(ts, 'EEE')
date_format(ts, 'd/M/yy')
date_format(ts, "yyyy-MM-dd'T'HH:mm:ss")
date_format(ntz, 'yyyy-MM-dd-HH')
make_date(2024, 2, 29)
make_date(2023, 2, 29)
make_date(2024, i, 1)
to_date(num)
to_date(ts)
to_date('2024-03-10 10:00:00')
to_timestamp(num)
to_timestamp('2024-03-10 02:30:00')
to_timestamp(dt)
to_timestamp_ltz(num)
to_timestamp_ltz(dt)
to_timestamp_ntz(num)
unix_date(dt)
date_from_unix_date(i)
date_from_unix_date(by)
unix_micros(ts)
timestamp_micros(l)
timestamp_micros(i)
timestamp_seconds(i)
timestamp_seconds(l)
timestamp_seconds(d)
timestamp_seconds(dec)
unix_timestamp(ts)
unix_timestamp(dt)
to_unix_timestamp(ts)
to_unix_timestamp(dt)
from_unixtime(i)
from_unixtime(l)
from_unixtime(i, 'yyyy-MM-dd')
size(arr)
size(m)
cardinality(arr)
array_contains(arr, 2)
array_contains(arr, 2L)
array_contains(arr, i)
element_at(arr, 1)
element_at(arr, -1)
element_at(arr, 2)
element_at(arr, 0)
element_at(m, 'a')
get(arr, 0)
get(arr, 5)
get(arr, -1)
arr[0]
arr[1]
arr[i]
m['a']
m['zz']
map_keys(m)
map_values(m)
map_contains_key(m, 'a')
st.x
st.y
st
arr
m
cast(st as string)
cast(arr as string)
cast(m as string)
cast(arr as array<string>)
cast(st as struct<a: bigint, b: string>)
date'2024-01-01' = ts
ts > '2024-01-01'
ts = ntz
dt = ts
dt < ntz
ts > dt
i = num
s = 'abc '
s > 'a'
s < p
num > 5
num = 12.5
dec = num
d = num
dt = num
ts = num
ntz = num
b = num
bin = s
cast('2024-03-10T10:00:00Z' as timestamp)
cast('2024-03-10 02:30:00' as timestamp)
cast('2024-03-10 02:30:00 America/Los_Angeles' as timestamp)
cast('2024-03-10 02:30:00+05:30' as timestamp)
cast('2024-03-10 02:30:00 +5' as timestamp)
cast('2024-03-10 02:30' as timestamp)
cast('2024-03' as timestamp)
cast('2024' as date)
cast('2024-3-1' as date)
cast(' 2024-03-01 ' as date)
cast('2024-03-01x' as date)
cast('2024-03-01 x' as date)
cast('20240301' as date)
cast('2024-13-01' as date)
cast('2023-02-29' as date)
cast('2024-03-10 24:00:00' as timestamp)
cast('2024-03-10 10:00:00.123456789' as timestamp)
cast('2024-03-10 10:00:00 PST' as timestamp)
cast('2024-03-10 02:30:00+01:00' as timestamp_ntz)
cast('true' as boolean)
cast('1' as boolean)
cast('yes' as boolean)
cast('maybe' as boolean)
cast('1.5' as int)
cast(' 12 ' as int)
cast('+12' as int)
cast('1e2' as int)
cast('1e2' as double)
cast('1.5f' as double)
cast('inf' as double)
cast('-Infinity' as float)
cast('abc' as double)
cast('0x10' as int)
cast('12345678901' as int)
cast('12.345' as decimal(4,2))
cast('1e3' as decimal(6,1))
cast('abc' as decimal(4,2))
cast(1.5 as decimal(3,1))
cast(99.95 as decimal(3,1))
cast(1.25 as decimal(2,1))
cast(2.5 as int)
cast(-2.5 as int)
cast(1e10 as int)
cast(double('NaN') as int)
cast(1e300 as float)
cast(0.1 as float)
cast(0.1F as double)
cast(0.1F as decimal(20,18))
cast(1e-7 as string)
cast(1e7 as string)
cast(123456.789 as string)
cast(0.001 as string)
cast(1e-320 as string)
cast(100F as string)
cast(-0.0D as string)
cast(0E-10BD as string)
cast(0.0000001 as string)
cast(dt as int)
try_cast(num as int)
try_cast(num as date)
try_cast(num as timestamp)
try_cast(num as double)
try_cast(num as boolean)
try_cast(num as decimal(5,2))
try_cast(l as int)
try_cast(d as int)
try_cast(dec as decimal(3,1))
try_cast(i as tinyint)
try_cast(i as timestamp)
i::bigint
num::string = '12'
cast(null as int)
cast(i as varchar(3))
'it''s'
'a\'b'
'a\tb\n\\\u0041\101\%\_'
r'a\tb'
"dou""ble"
'a' 'b'
X'1F'
X'ABC'
1e2
1.50
.5
5.
1.5BD
1e3BD
3L
7S
7Y
1.5D
1.5F
123456789012345678901234567890
0.00000000000000000000000000000000000001
date'2024-01-01'
date'2024'
timestamp'2024-03-10 02:30:00'
timestamp'2024-11-03 01:30:00'
timestamp'2024-03-10 02:30:00+01:00'
timestamp_ntz'2024-03-10 02:30:00'
`by` <> 1
"abc"
i !< j
i !> j
i == j
i <> j
-1
- 1
+1
null
null + 1
null = 1
null and true
split(s, '.')
regexp_replace(s, '(b)', '[$1]')
regexp_extract(s, '(b.)', 1)
translate(s, 'abc', 'xy')
ascii(s)
base64(bin)
hash(i)
xxhash64(i)
crc32(bin)
bit_count(i)
conv('ff', 16, 10)
format_number(d, 2)
levenshtein(s, p)
soundex(s)
substring_index(s, '.', 1)
nanvl(d, 1.0)
sort_array(arr)
array_distinct(arr)
slice(arr, 1, 2)
transform(arr, x -> x + 1)
exists(arr, x -> x > 1)
aggregate(arr, 0, (acc, x) -> acc + x)
named_struct('a', i, 'b', s)
struct(i, s)
array(i, j)
to_json(st)
from_json('{"x":1}', 'x int')
get_json_object('{"a":{"b":1}}', '$.a.b')
from_utc_timestamp(ts, 'Asia/Tokyo')
to_utc_timestamp(ntz, 'America/New_York')
to_date(num, 'yyyy-MM-dd')
to_timestamp('10/03/2024', 'dd/MM/yyyy')
dt - date'2024-01-01'
ts - ntz
arr = arr
st = st
array_join(arr, ',')
elt(2, s, p)
find_in_set('a', 'b,a')
try_add(i, 1)
try_divide(i, j)
array(1, 2.5, null)
array(i, 'x')
array(i, null)
array()
array(null)
array(s, p)
array(d, i)
array(arr, array(1))
array(st, named_struct('X', 1L, 'Y', 'n'))
array(1, true)
size(array(i, j, 1))
size(array())
array(i, j)[0]
array(i, j)[2]
array_contains(array(i, j), 1)
cast(array(i, j) as array<string>)
array(i, j) = array(j, i)
concat(arr, array(i))
map('a', i)
map('a', i, 'b', null)
map(i, s, j, p)
map(s, 1, 'ABC', 2)
map(d, 1, 0.0D, 2)
map(null, 1)
map()
map('a', 1, 'b')
map('a', 1, 2, 'x')
map(m, 1)
size(map(arr, 1))
map('a', 1)['a']
map('a', i, 'b', j).b
element_at(map('a', i, 'b', j), 'c')
map_keys(map(1, s, 2, p))
map_values(map(1, s, 2, p))
size(map('a', 1, 'b', 2))
struct(i, s, 1)
struct(st.x, st.y, i + 1, null)
struct()
struct(m['a'], arr)
struct(i, s).s
named_struct('a', i, 'b', null)
named_struct('a', array(i), 'b', map('k', s))
named_struct('a', i).a
named_struct('a', i).A
named_struct('a')
named_struct(s, i)
named_struct('x', 1, 'y', 'x') = st
st <=> named_struct('x', i, 'y', s)
coalesce(st, named_struct('x', 0, 'y', 'none'))
if(b, arr, array(i))
case when b then m else map('z', 26) end
cast(named_struct('a', i, 'b', s) as struct<c: bigint, d: string>)
named_struct('a', 1 / i)
array(1 / i, d)
"""


def expressions() -> list[str]:
    """Every expression, each once: by hand first, then operators over types and casts."""
    out = [line for line in HAND.splitlines() if line.strip()]
    for column, literals in LITERALS.items():
        for literal in literals:
            out += [f"{column} = {literal}", f"{column} < {literal}", f"{column} >= {literal}"]
        out.append(f"{literals[0]} > {column}")
        out.append(f"{column} <=> {literals[-1]}")
        out.append(f"not ({column} = {literals[0]})")
    for column in SCALARS:
        out += [f"{column} is null", f"{column} = {column}", f"{column} <= {column}"]
        out += [f"cast({column} as {t})" for t in TYPES]
    for column in ("d", "dec2", "num", "l"):
        out += [f"try_cast({column} as {t})" for t in TYPES]
    return list(dict.fromkeys(out))


def values_clause() -> list[tuple[str, ...]]:
    """The rows as Spark literals of the columns' types."""
    out: list[tuple[str, ...]] = []
    kinds = list(COLUMNS.values())
    for row in ROWS.strip().split("\n\n"):
        line = row.replace("\n", " ")
        cells = [c.strip() for c in line.split(" | ")]
        assert len(cells) == len(kinds), line
        out.append(tuple(_literal(c, k) for c, k in zip(cells, kinds, strict=True)))
    return out


def _literal(cell: str, kind: str) -> str:  # noqa: PLR0911 - one line a type
    if cell == "null":
        return f"cast(null as {kind})"
    if kind == "timestamp":
        return f"timestamp{_signed(cell)}"
    if kind == "timestamp_ntz":
        return f"timestamp_ntz{cell}"
    if kind == "date":
        return f"date{_signed(cell)}"
    if kind.startswith("decimal"):
        return f"cast('{cell}' as {kind})"
    if kind in ("float", "double"):
        return f"cast('{cell.strip(chr(39))}' as {kind})"
    return f"cast({cell} as {kind})"


def _signed(cell: str) -> str:
    return cell.replace("'12345", "'+12345")


def wrapped(expression: str, kind: Any) -> str:
    """The expression in a form that crosses to Python whole: instants as numbers, texts as bytes."""
    from pyspark.sql import types as t

    if isinstance(kind, t.TimestampType):
        return f"unix_micros({expression})"
    if isinstance(kind, t.DateType):
        return f"unix_date({expression})"
    if isinstance(kind, t.TimestampNTZType):
        return f"cast({expression} as string)"
    if isinstance(kind, t.StringType):
        return f"hex({expression})"
    return expression


def encode(value: Any, kind: Any) -> Any:
    """One collected value as JSON."""
    from pyspark.sql import types as t

    if value is None:
        return None
    if isinstance(kind, t.StringType):
        return text_of(value)
    if isinstance(kind, t.TimestampNTZType):
        return micros_of(value)
    return encode_plain(value)


def encode_plain(value: Any) -> Any:  # noqa: PLR0911 - one line a type
    """A value whose text form is its own; nested ones by recursion."""
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        return value if math.isfinite(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).hex()
    if isinstance(value, dict):
        return [[encode_plain(k), encode_plain(v)] for k, v in value.items()]
    if isinstance(value, (list, tuple)):
        return [encode_plain(v) for v in value]
    return value


def text_of(value: str) -> Any:
    """A text from its hexadecimal bytes; a BINARY cast to STRING need not be UTF-8."""
    try:
        return bytes.fromhex(value).decode()
    except UnicodeDecodeError:
        return {"!": "NOT_UTF8"}


def micros_of(value: str) -> int:
    """Microseconds of Spark's text of a TIMESTAMP_NTZ; years need not fit Python's datetime."""
    match = re.fullmatch(r"([+-]?)(\d+)-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)(?:\.(\d+))?", value)
    assert match, value
    year = int(match[2]) * (-1 if match[1] == "-" else 1)
    eras = year // 400
    day = dt.date(year - eras * 400 + 400, int(match[3]), int(match[4])).toordinal()
    days = day - dt.date(1970, 1, 1).toordinal() + (eras - 1) * 146_097
    seconds = int(match[5]) * 3600 + int(match[6]) * 60 + int(match[7])
    return (days * 86_400 + seconds) * 1_000_000 + int(((match[8] or "") + "000000")[:6])


class Spark:
    """A local session over the rows, as one view and as one view a row."""

    def __init__(self) -> None:
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
        builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
        self.session = builder.config("spark.driver.memory", "1500m").getOrCreate()
        self.session.sparkContext.setLogLevel("OFF")
        # PySpark logs every error with both stack traces, and errors are half of what is asked for here.
        logging.getLogger("SQLQueryContextLogger").disabled = True
        self.rows = values_clause()
        names = ", ".join(f"`{c}`" for c in COLUMNS)
        for number, chosen in [("", self.rows), *((str(n), [r]) for n, r in enumerate(self.rows))]:
            body = ", ".join("(" + ", ".join(r) + ")" for r in chosen)
            self.session.sql(f"select * from values {body} as t({names})").createOrReplaceTempView(f"t{number}")

    def mode(self, ansi: str, zone: str) -> None:
        """Set the two settings that every answer depends on."""
        self.session.conf.set("spark.sql.ansi.enabled", ansi)
        self.session.conf.set("spark.sql.session.timeZone", zone)

    def ask(self, expression: str, kind: Any, row: str = "") -> list[Any]:
        """The values of an expression."""
        rows = self.session.sql(f"select {wrapped(expression, kind)} as c from t{row}").collect()
        return [encode(r[0], kind) for r in rows]

    def type_of(self, expression: str) -> Any:
        """The result type, or why Spark refuses the expression."""
        from pyspark.errors import PySparkException

        try:
            return self.session.sql(f"select {expression} as c from t").schema[0].dataType
        except PySparkException as error:
            return {"!": str(error.getCondition()).partition(".")[0]}

    def answers(self, expression: str, kind: Any) -> list[Any]:
        """Values by row; where one row raises, row by row."""
        from pyspark.errors import PySparkException

        try:
            return self.ask(expression, kind)
        except PySparkException:
            pass
        out: list[Any] = []
        for number in range(len(self.rows)):
            try:
                out += self.ask(expression, kind, str(number))
            except PySparkException as error:
                out.append({"!": str(error.getCondition() or "UNNAMED").partition(".")[0]})
        return out


def main() -> None:
    """Ask Spark everything and write the two files."""
    spark = Spark()
    wanted = expressions()
    results: dict[str, dict[str, Any]] = {e: {"e": e, "t": [], "r": [], "m": []} for e in wanted}
    for ansi, zone in MODES:
        spark.mode(ansi, zone)
        for e in wanted:
            kind, result = spark.type_of(e), results[e]
            if isinstance(kind, dict):
                answer: Any = kind
            else:
                name = kind.simpleString()
                answer = {"!": "INTERVAL"} if "interval" in name else spark.answers(e, kind)
                if name not in result["t"]:
                    result["t"].append(name)
            if answer not in result["r"]:
                result["r"].append(answer)
            result["m"].append(result["r"].index(answer))
        sys.stderr.write(f"ansi {ansi}, {zone}: {len(wanted)} expressions\n")
    OUT.mkdir(parents=True, exist_ok=True)
    spark.mode("true", "UTC")
    schema = spark.session.sql("select * from t").schema
    data = {f.name: spark.ask(f"`{f.name}`", f.dataType) for f in schema}
    rows = {"schema": json.loads(schema.json()), "columns": data}
    (OUT / "rows.json").write_text(json.dumps(rows, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    lines = [json.dumps(results[e], ensure_ascii=False, separators=(",", ":")) for e in wanted]
    (OUT / "golden.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
