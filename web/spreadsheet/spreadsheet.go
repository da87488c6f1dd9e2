// Package spreadsheet writes files for spreadsheet programs.
package spreadsheet

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Cell returns a value for a CSV file: instants in UTC, numbers without separators, missing values
// empty, and text in a form that no spreadsheet takes for a formula.
func Cell(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return harmless(v)
	case int:
		return strconv.Itoa(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case time.Time:
		if v.IsZero() {
			return ""
		}
		return v.UTC().Format(time.RFC3339Nano)
	case *int64:
		if v == nil {
			return ""
		}
		return Cell(*v)
	case *time.Time:
		if v == nil {
			return ""
		}
		return Cell(*v)
	}
	return harmless(fmt.Sprint(v))
}

// harmless puts an apostrophe before text that a spreadsheet would execute: a name or row from
// outside must not run a formula on a staff member's machine.
func harmless(s string) string {
	if strings.HasPrefix(s, "'") || strings.ContainsAny(first(strings.TrimLeft(s, " \u00A0\u3000")), "=+-@\t\r\n|%＝＋－＠") {
		return "'" + s
	}
	return s
}

// first returns the first character of s, or "".
func first(s string) string {
	for i := range s {
		if i > 0 {
			return s[:i]
		}
	}
	return s
}
