package drops

import (
	"testing"
	"time"

	"dropbell/domain/draw"
	"dropbell/domain/report"
	"dropbell/domain/template"
	"dropbell/views/i18n"
	"dropbell/views/ui"
)

// TestStoryOfADraw: the sentence of a draw tells its entries, and not how fast the coupons were gone.
func TestStoryOfADraw(t *testing.T) {
	r := report.Report{Draw: &draw.Fairness{Draw: draw.Draw{State: draw.Done, DrawnAt: new(time.Unix(0, 0)), Counts: draw.Counts{Entered: 100_010, Left: 10, Won: 100}}}}
	r.Figures.Total, r.Figures.Issued, r.Figures.SoldOutAfter = 100, 100, time.Minute
	languages, err := i18n.Load()
	if err != nil {
		t.Fatal(err)
	}
	for tag, want := range map[string]string{
		"en":    "100 winners drawn from 100,000 entries: 1,000 entries for each winner.",
		"zh-CN": "100,000 份报名中抽出 100 位中签者：每位中签者对应 1,000 份报名。",
	} {
		if got := StoryText(ui.With(t.Context(), &ui.Frame{Locale: languages.Match(tag)}), r); got != want {
			t.Errorf("%s: %q, want %q", tag, got, want)
		}
	}
}

// TestSentenceOfADraw: the card of a draw begins with its entries and how far it is, in both languages.
func TestSentenceOfADraw(t *testing.T) {
	languages, err := i18n.Load()
	if err != nil {
		t.Fatal(err)
	}
	drop := template.Template{Spec: template.Spec{Stock: 100}, ShopTimezone: "Asia/Shanghai"}
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	open := draw.Draw{State: draw.Open, ClosesAt: at, Counts: draw.Counts{Entered: 4230, Left: 30}}
	sealed, done := open, open
	sealed.State = draw.Sealed
	done.State, done.DrawnAt, done.Won = draw.Done, &at, 100
	for _, c := range []struct {
		draw draw.Draw
		want map[string]string
	}{
		{open, map[string]string{"en": "4,200 entries so far for 100 coupons. Entries close Fri 20 Nov 2026, 20:00.", "zh-CN": "目前 4,200 份报名，争取 100 张券。报名截止：2026年11月20日 周五 20:00。"}},
		{sealed, map[string]string{"en": "4,200 entries for 100 coupons. The list is sealed. The draw is made as soon as the random value exists.", "zh-CN": "4,200 份报名，争取 100 张券。名单已封存，随机值出现后即抽签。"}},
		{done, map[string]string{"en": "100 of 4,200 entries won. The draw is made, and the winners have their coupons.", "zh-CN": "4,200 份报名中有 100 份中签。已抽签，中签者均已得券。"}},
	} {
		for tag, want := range c.want {
			if got := drawText(ui.With(t.Context(), &ui.Frame{Locale: languages.Match(tag)}), drop, &c.draw); got != want {
				t.Errorf("%s: %q, want %q", tag, got, want)
			}
		}
	}
}
