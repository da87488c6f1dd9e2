package wording

import (
	"testing"
	"time"
)

func TestZone(t *testing.T) {
	for _, c := range []struct{ zone, tag, winter, summer string }{
		{"Asia/Shanghai", "en-GB", "Beijing time", "Beijing time"},
		{"Asia/Shanghai", "zh-CN", "北京时间", "北京时间"},
		{"Asia/Shanghai", "zh", "北京时间", "北京时间"},
		{"Asia/Shanghai", "fr", "UTC+8", "UTC+8"},
		{"Asia/Shanghai", "", "UTC+8", "UTC+8"},
		{"America/New_York", "en", "New York time (UTC−5)", "New York time (UTC−4)"},
		{"Europe/Berlin", "zh-CN", "柏林时间（UTC+1）", "柏林时间（UTC+2）"},
		{"Pacific/Chatham", "zh", "UTC+13:45", "UTC+12:45"},
		{"UTC", "zh", "UTC", "UTC"},
	} {
		zone, err := time.LoadLocation(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		for month, want := range map[time.Month]string{time.January: c.winter, time.July: c.summer} {
			if got := Zone(time.Date(2026, month, 15, 12, 0, 0, 0, zone), c.tag); got != want {
				t.Errorf("%s in %q in %v: %q, want %q", c.zone, c.tag, month, got, want)
			}
		}
	}
}
