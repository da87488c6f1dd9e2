package recipe

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"dropbell/domain/campaign"
)

// names are the names of the forms in English and Chinese.
var names = map[Form][2]string{
	Missed:   {"Reserved but did not claim", "预约了但没有领取"},
	Lost:     {"Came too late", "来晚了"},
	WinBack:  {"Win back customers", "召回客户"},
	Calendar: {"The week’s calendar", "本周日历"},
}

// chinese reports whether the default text of the recipe has Chinese characters. Campaigns and lists of the recipe then have Chinese names.
func (s Settings) chinese() bool {
	text := s.Texts[""]
	return strings.ContainsFunc(text.Title+text.Body, func(r rune) bool { return unicode.Is(unicode.Han, r) })
}

// ListName names the list of the users whom the round found.
func (r Round) ListName() string {
	name := names[r.Form]
	if r.Settings.chinese() {
		return fmt.Sprintf("%s · #%d", name[1], r.ID)
	}
	return fmt.Sprintf("%s · #%d", name[0], r.ID)
}

// campaignName names the campaign of the round by its form, the name of its drop ("" = it is about no drop) and its day in the zone. Two
// campaigns of a name that begin at the same instant count as a repetition, so the name has the number of the round.
func (r Round) campaignName(drop string, zone *time.Location) string {
	at, form, day := r.At.In(zone), names[r.Form][0], "2 Jan 2006"
	if r.Settings.chinese() {
		form, day = names[r.Form][1], "2006年1月2日"
	}
	end := fmt.Sprintf(" · %s · #%d", at.Format(day), r.ID)
	name := []rune(form)
	if drop != "" {
		name = []rune(form + " · " + strings.TrimSpace(drop))
	}
	return string(name[:min(len(name), campaign.MaxName-len([]rune(end)))]) + end
}
