package recipe

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
)

// TestNames: the campaign and the list of a round are named in the language of the recipe's default text, and two rounds have two names.
func TestNames(t *testing.T) {
	at := time.Date(2026, 11, 30, 20, 0, 0, 0, time.UTC) // the first of December in Shanghai
	zone := time.FixedZone("CST", 8*60*60)
	english := Settings{Texts: map[string]delivery.Text{"": {Title: "This week’s drops"}, "zh-CN": {Title: "本周抢券活动"}}}
	chinese := Settings{Texts: map[string]delivery.Text{"": {Title: "{{drop}}已抢光"}}}
	for _, c := range []struct {
		round          Round
		drop           string
		campaign, list string
	}{
		{Round{ID: 12, Form: Calendar, At: at, Settings: english}, "", "The week’s calendar · 1 Dec 2026 · #12", "The week’s calendar · #12"},
		{Round{ID: 13, Form: Lost, At: at, Settings: chinese}, "月饼之夜", "来晚了 · 月饼之夜 · 2026年12月1日 · #13", "来晚了 · #13"},
		{Round{ID: 14, Form: WinBack, At: at}, "", "Win back customers · 1 Dec 2026 · #14", "Win back customers · #14"},
		{Round{ID: 15, Form: Missed, At: at}, "Tea", "Reserved but did not claim · Tea · 1 Dec 2026 · #15", "Reserved but did not claim · #15"},
	} {
		if got := c.round.campaignName(c.drop, zone); got != c.campaign {
			t.Errorf("campaign %q, want %q", got, c.campaign)
		}
		if got := c.round.ListName(); got != c.list {
			t.Errorf("list %q, want %q", got, c.list)
		}
	}
	long := Round{ID: 16, Form: Missed, At: at}.campaignName(strings.Repeat("夜", 300), zone)
	if n := utf8.RuneCountInString(long); n != campaign.MaxName || !strings.HasSuffix(long, "· #16") {
		t.Errorf("a long name has %d characters: %s", n, long)
	}
}
