package drops

import (
	"testing"
	"time"

	"dropbell/domain/draw"
	"dropbell/domain/report"
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
		"en":    "100,000 entries for 100 coupons, drawn by lot: 1,000 entries for each winner.",
		"zh-CN": "100,000 人报名，抽出 100 张券：每张券 1,000 人报名。",
	} {
		if got := StoryText(ui.With(t.Context(), &ui.Frame{Locale: languages.Match(tag)}), r); got != want {
			t.Errorf("%s: %q, want %q", tag, got, want)
		}
	}
}
