#!/usr/bin/env python3
"""Compares answers of Sextant and PostgreSQL for casts, arithmetic, NULL and comparisons.

Random statements go to both, over psql. A difference is printed with both answers, unless `known` has its reason; those are
counted. The command ends with 1 if there are others.

    tests/differential.py --sextant 'host=127.0.0.1 port=5433' --postgres 'host=/tmp/pg user=postgres' \
        [--statements 5000] [--seed 1]

Sextant must be empty (`sextant dev --data DIR`), PostgreSQL is of version 15, and both must trust the user. The statements make a bucket
`differential` with an index `differential_i` here, and a temporary table of that name there.
"""

import argparse
import json
import random
import re
import subprocess
import sys
from collections import Counter
from decimal import Decimal, InvalidOperation

COLUMNS = {"k": "int8", "n": "numeric", "f": "float8", "s": "text", "flag": "bool"}
TEXTS = ["a", "abc", "", "12", " 7 ", "19.99", "-3", "+4", "1e3", "yes", "No", "t", "off", "o", "maybe", "Infinity", "-inf",
         "99999999999", "9223372036854775808", "0", "1", ".5", "5.", "1_000", "tru"]
NUMBERS = ["0", "1", "2", "3", "7", "-7", "10", "2.5", "-2.5", "3.5", "0.5", "19.99", "7.0", "1e2", "1.50", "100", "-1",
           "2147483647", "2147483648", "9007199254740993", "0.1"]
TYPES = ["int4", "int8", "float8", "numeric", "bool", "text"]


def number(rng):
    return rng.choice(NUMBERS)


def text(rng):
    return "'%s'" % rng.choice(TEXTS)


def constant(rng):
    return rng.choice([number, number, text, lambda _: rng.choice(["NULL", "true", "false"])])(rng)


def numeric_expr(rng, depth, column):
    """An expression that is a number by its type."""
    kind = rng.randrange(9 if depth else 3)
    if kind == 0:
        return number(rng)
    if kind == 1:
        return "%s::%s" % (rng.choice([text(rng), "(%s)" % number(rng)]), rng.choice(TYPES[:4]))
    if kind == 2:
        return rng.choice(["k", "n", "f"]) if column else "(%s)::%s" % (number(rng), rng.choice(TYPES[:4]))
    inner = lambda: numeric_expr(rng, depth - 1, column)
    if kind == 3:
        return "(%s)::%s" % (inner(), rng.choice(TYPES[:4]))
    if kind == 4:
        return "-(%s)" % inner()
    if kind == 5:
        return "abs(%s)" % inner()
    return "(%s %s %s)" % (inner(), rng.choice("+-*//%"), inner())


def any_expr(rng, depth, column):
    kind = rng.randrange(5)
    if kind == 0:
        return "(%s)::%s" % (constant(rng), rng.choice(TYPES))
    if kind == 1 and column:
        return rng.choice(list(COLUMNS))
    if kind == 2 and column:
        return "%s::%s" % (rng.choice(list(COLUMNS)), rng.choice(TYPES))
    return numeric_expr(rng, depth, column)


def condition(rng, depth, column):
    kind = rng.randrange(10 if depth else 6)
    left = numeric_expr(rng, 1, column)
    if kind == 0:
        return "%s IS %sNULL" % (any_expr(rng, 1, column), rng.choice(["", "NOT "]))
    if kind == 1:
        return "%s %sIN (%s)" % (left, rng.choice(["", "NOT "]),
                                 ", ".join(rng.choice([number(rng), "NULL"]) for _ in range(3)))
    if kind == 2:
        return "%s %sBETWEEN %s AND %s" % (left, rng.choice(["", "NOT "]), number(rng), number(rng))
    if kind == 3 and column:
        return "s %s %s" % (rng.choice(["=", "<", ">=", "<>", "LIKE", "NOT LIKE"]), text(rng))
    if kind < 6:
        return "%s %s %s" % (left, rng.choice(["=", "<>", "<", "<=", ">", ">="]), numeric_expr(rng, 1, column))
    inner = [condition(rng, depth - 1, column) for _ in range(2)]
    if kind == 6:
        return "NOT (%s)" % inner[0]
    return "((%s) %s (%s))" % (inner[0], rng.choice(["AND", "OR"]), inner[1])


def statement(rng):
    kind = rng.randrange(5)
    if kind == 0:
        return "SELECT %s" % any_expr(rng, 2, False)
    if kind == 1:
        return "SELECT %s" % condition(rng, 2, False)
    if kind == 2:
        return "SELECT id, %s FROM differential_i" % any_expr(rng, 2, True)
    if kind == 3:
        return "SELECT count(*), count(%s), min(k), max(n), sum(k) FROM differential_i WHERE %s" % (
            rng.choice(list(COLUMNS)), condition(rng, 2, True))
    return "SELECT id FROM differential_i WHERE %s" % condition(rng, 2, True)


def documents(rng):
    for n in range(40):
        values = {
            "k": rng.choice([0, 1, 2, 7, -7, 100, 2147483648]),
            "n": rng.choice([0, 1, 2.5, -2.5, 19.99, 7, 0.5]),
            "f": rng.choice([0.5, 1.5, 2.5, -3.5, 1e300, 4]),
            "s": rng.choice(TEXTS),
            "flag": rng.choice([True, False]),
        }
        document = {}
        for name, value in values.items():
            kind = rng.randrange(8)
            if kind == 0:
                document[name] = None
            elif kind > 1:
                document[name] = value
        yield "d%02d" % n, document


def run(connection, statements):
    """The answer of each statement: its sorted rows, or its SQLSTATE."""
    script = ["\\set VERBOSITY sqlstate", "\\pset null NULL", "\\pset format unaligned", "\\pset tuples_only on"]
    for n, sql in enumerate(statements):
        script += ["\\echo #%d" % n, sql + ";"]
    ran = subprocess.run(["psql", "-X", "-q", connection], input="\n".join(script), text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    answers = [None] * len(statements)
    at = None
    for line in ran.stdout.splitlines():
        if re.fullmatch(r"#\d+", line):
            at = int(line[1:])
            answers[at] = []
        elif at is not None:
            error = re.search(r"ERROR:\s+(\w{5})", line)
            answers[at].append("!" + error.group(1) if error else line)
    lost = [n for n, answer in enumerate(answers) if answer is None]
    if lost:
        sys.exit("no answer to %r\n%s" % (statements[lost[0]], ran.stdout[-500:]))
    return [sorted(answer) for answer in answers]


def same_cell(left, right):
    if left == right:
        return True
    try:
        left, right = Decimal(left), Decimal(right)
    except InvalidOperation:
        return False
    if left.is_infinite() or right.is_infinite() or left.is_nan() or right.is_nan():
        return left == right
    return abs(left - right) <= abs(right) * Decimal("1e-12")


def same(left, right):
    if len(left) != len(right):
        return False
    return all(
        len(a.split("|")) == len(b.split("|")) and all(map(same_cell, a.split("|"), b.split("|")))
        for a, b in zip(left, right))


def known(sql, postgres, sextant):
    """The reason of a difference that is meant; None for any other one."""
    state = next((line for line in postgres if line.startswith("!")), "")
    if state in ("!42846", "!42883", "!42804", "!42725"):
        return "PostgreSQL refuses the types before it runs; values of documents have types of their own"
    if state == "!22003":
        return "integers are calculated with 64 bits and beyond as numbers, PostgreSQL stops at the operand's width"
    ours = next((line for line in sextant if line.startswith("!")), "")
    if "::text" in sql or "s::" in sql and "numeric" in sql:
        if not state and not ours:
            return "a number has one text: 1.50 is 1.5"
    if ours == "!0A000" and "nf" in sql.lower():
        return "NaN is not supported"
    # Neither says in which order it evaluates the operands of a statement, so either may fail first, or not at all if another decides.
    if ("AND" in sql or "OR" in sql or " IN (" in sql) and {state, ours} & {"!22012", "!22003", "!22P02"}:
        return "a condition that another one decides is not evaluated"
    if state and ours:
        return "another operand fails first"
    if "%" in sql and state in ("", "!22012") and not ours:
        return "numbers with a fraction are doubles, and a remainder shows their last bit"
    if " IN (" in sql and "9007199254740993" in sql:
        return "a double is compared with an integer exactly, PostgreSQL compares both as doubles"
    if "NaN" in "|".join(postgres):
        return "NaN is not supported"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sextant", required=True)
    parser.add_argument("--postgres", required=True)
    parser.add_argument("--statements", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--shown", type=int, default=20)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    rows = list(documents(rng))
    here = ["SET consistency = 'request_plus'", "DROP BUCKET IF EXISTS differential", "CREATE BUCKET differential",
            "INSERT INTO differential (id, doc) VALUES " + ", ".join(
                "('%s', '%s')" % (id, json.dumps(document)) for id, document in rows),
            "CREATE INDEX differential_i ON differential (META().id) INCLUDE (k::int8, n::numeric, f::float8, s, flag::bool)"
            " WITH (slices = 2)"]
    there = ["CREATE TEMP TABLE differential_i (id text, k int8, n numeric, f float8, s text, flag bool)"] + [
        "INSERT INTO differential_i SELECT '%s', k, n, f, s, flag FROM jsonb_to_record('%s') AS"
        " x (k int8, n numeric, f float8, s text, flag bool)" % (id, json.dumps(document)) for id, document in rows]
    statements = [statement(rng) for _ in range(arguments.statements)]
    ours = run(arguments.sextant, here + statements)[len(here):]
    theirs = run(arguments.postgres, there + statements)[len(there):]
    reasons, others = Counter(), []
    for sql, postgres, sextant in zip(statements, theirs, ours):
        if not same(postgres, sextant):
            reason = known(sql, postgres, sextant)
            if reason:
                reasons[reason] += 1
            else:
                others.append((sql, postgres, sextant))
    for reason, count in reasons.most_common():
        print("%6d known: %s" % (count, reason))
    print("%6d of %d statements differ otherwise (seed %d)" % (len(others), len(statements), arguments.seed))
    for sql, postgres, sextant in others[:arguments.shown]:
        print("\n%s\n  postgres %s\n  sextant  %s" % (sql, postgres[:4], sextant[:4]))
    sys.exit(1 if others else 0)


if __name__ == "__main__":
    main()
