package wording

import (
	"fmt"
	"strings"
	"time"
)

// zonesInEnglish names, by IANA name, the zones that are not called by their city.
var zonesInEnglish = map[string]string{
	"Asia/Shanghai": "Beijing time", "Asia/Kolkata": "India time", "Asia/Kathmandu": "Nepal time", "America/Sao_Paulo": "São Paulo time",
}

// zonesInChinese names zones; Chinese has no rule to make a name of a city.
var zonesInChinese = map[string]string{
	"Asia/Shanghai": "北京时间", "Asia/Urumqi": "乌鲁木齐时间", "Asia/Hong_Kong": "香港时间", "Asia/Macau": "澳门时间", "Asia/Taipei": "台北时间",
	"Asia/Tokyo": "东京时间", "Asia/Seoul": "首尔时间", "Asia/Singapore": "新加坡时间", "Asia/Kuala_Lumpur": "吉隆坡时间", "Asia/Bangkok": "曼谷时间",
	"Asia/Ho_Chi_Minh": "胡志明市时间", "Asia/Jakarta": "雅加达时间", "Asia/Manila": "马尼拉时间", "Asia/Kolkata": "印度时间", "Asia/Kathmandu": "尼泊尔时间",
	"Asia/Dubai": "迪拜时间", "Europe/Moscow": "莫斯科时间", "Europe/Istanbul": "伊斯坦布尔时间", "Europe/Berlin": "柏林时间", "Europe/Paris": "巴黎时间",
	"Europe/Madrid": "马德里时间", "Europe/Rome": "罗马时间", "Europe/London": "伦敦时间", "Europe/Lisbon": "里斯本时间", "Africa/Cairo": "开罗时间",
	"Africa/Johannesburg": "约翰内斯堡时间", "America/Sao_Paulo": "圣保罗时间", "America/New_York": "纽约时间", "America/Chicago": "芝加哥时间",
	"America/Denver": "丹佛时间", "America/Los_Angeles": "洛杉矶时间", "America/Toronto": "多伦多时间", "America/Vancouver": "温哥华时间",
	"Australia/Sydney": "悉尼时间", "Pacific/Auckland": "奥克兰时间",
}

// Zone names t's zone as readers of the language call it, such as "Beijing time". The
// offset is added if clocks change in t's year, since the name alone would not tell
// apart two equal times of one night. Without a known name, and in languages other
// than English and Chinese, Zone returns the offset alone.
func Zone(t time.Time, tag string) string {
	name, seconds := t.Zone()
	if name == "UTC" || name == "GMT" {
		return name
	}
	called := called(t.Location(), tag)
	if called == "" {
		return offset(seconds)
	}
	switch {
	case !clocksChange(t):
		return called
	case strings.HasPrefix(tag, "zh"):
		return called + "（" + offset(seconds) + "）"
	}
	return called + " (" + offset(seconds) + ")"
}

// called is the language's name of the zone, "" if it has none.
func called(zone *time.Location, tag string) string {
	base, _, _ := strings.Cut(tag, "-")
	id := zone.String()
	switch base {
	case "zh":
		return zonesInChinese[id]
	case "en":
		if name := zonesInEnglish[id]; name != "" || !strings.Contains(id, "/") || strings.HasPrefix(id, "Etc/") {
			return name
		}
		return strings.ReplaceAll(id[strings.LastIndex(id, "/")+1:], "_", " ") + " time"
	}
	return ""
}

// clocksChange reports whether the zone of t has two offsets in t's year.
func clocksChange(t time.Time) bool {
	_, winter := time.Date(t.Year(), 1, 1, 0, 0, 0, 0, t.Location()).Zone()
	_, summer := time.Date(t.Year(), 7, 1, 0, 0, 0, 0, t.Location()).Zone()
	return winter != summer
}

func offset(seconds int) string {
	sign := "+"
	if seconds < 0 {
		sign, seconds = "−", -seconds
	}
	text := fmt.Sprintf("UTC%s%d", sign, seconds/3600)
	if m := seconds / 60 % 60; m != 0 {
		text += fmt.Sprintf(":%02d", m)
	}
	return text
}
