package message

import (
	"testing"
	"time"
)

// A list of openings has a line each, in the language of the text. The zone follows the last opening,
// and each opening after which the clocks change.
func TestAgenda(t *testing.T) {
	in := func(zone string, days ...int) (list []Opening) {
		z, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		for _, day := range days {
			list = append(list, Opening{time.Date(2026, 10, day, 8, 12, 14, 0, z), "Tea"})
		}
		return list
	}
	for _, c := range []struct {
		tag  string
		list []Opening
		want string
	}{
		{"en", in("Asia/Shanghai", 1, 12), "Thu 1 Oct, 08:12 · Tea\nMon 12 Oct, 08:12 · Tea\nBeijing time"},
		{"zh-CN", in("Asia/Shanghai", 1), "10月1日（周四）08:12 · Tea\n北京时间"},
		{"de", in("Asia/Shanghai", 1), "2026-10-01 08:12 · Tea\nUTC+8"},
		{"en", in("Europe/Berlin", 24, 25), "Sat 24 Oct, 08:12 · Tea\nBerlin time (UTC+2)\nSun 25 Oct, 08:12 · Tea\nBerlin time (UTC+1)"},
		{"en", nil, ""},
	} {
		if got := Agenda(c.tag, c.list); got != c.want {
			t.Errorf("%s: %q, want %q", c.tag, got, c.want)
		}
	}
}
