package report_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dropbell/domain/coupon"
	"dropbell/domain/draw"
	"dropbell/domain/report"
	"dropbell/domain/template"
)

// told returns a closed drop of 1,000 coupons that were gone in 42 s.
func told() report.Report {
	opens := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	t := template.Template{ID: 2, Stored: template.Closed, Spec: template.Spec{Name: "Moon cake night", Currency: "CNY", OpensAt: opens, ClosesAt: opens.Add(time.Hour)}}
	return report.Report{At: opens.Add(3 * time.Hour), People: report.People{Booked: 4000, Reminded: 3683, Opened: 2100, Claimed: 2200, Used: 600},
		Figures: report.Figures{Template: t, Total: 1000, Issued: 1000, SoldOutAfter: 42 * time.Second, Tally: coupon.Tally{Used: 612},
			Money: report.Money{Sums: report.Sums{Currency: "CNY", Paid: 610, PaidAmount: 6_200_000, Refunds: 10, RefundedAmount: 80_000}}}}
}

func pastOf(r report.Report) *report.Past {
	p := &report.Past{Figures: r.Figures}
	p.Template.ID, p.Template.Name = 1, "Mid-autumn"
	p.Money.Sums = report.Sums{Currency: p.Template.Currency, Paid: 500, PaidAmount: 5_186_440}
	return p
}

// Every part of the sentence is left out if its number is unknown or says nothing.
func TestStory(t *testing.T) {
	whole := report.Story{
		Coupons:  report.CouponPart{Known: true, Issued: 1000, Total: 1000, GoneIn: 42 * time.Second},
		Reminded: report.RemindedPart{Known: true, People: 3683, Opened: true},
		Used:     report.UsedPart{Known: true, Coupons: 612, Revenue: 6_120_000, Currency: "CNY"},
		Compared: report.ComparedPart{Known: true, Drop: "Mid-autumn", Revenue: 6_120_000, Before: 5_186_440},
	}
	for _, c := range []struct {
		name   string
		change func(*report.Report, *report.Past)
		want   func(*report.Story)
	}{
		{"everything is known", func(*report.Report, *report.Past) {}, func(*report.Story) {}},
		{"both drops gave coupons", func(r *report.Report, p *report.Past) { r.Tally.Issued, p.Tally.Issued, p.Tally.Used = 2000, 1300, 780 },
			func(s *report.Story) {
				s.Compared.Used, s.Compared.Given, s.Compared.UsedThen, s.Compared.GivenThen = 612, 2000, 780, 1300
			}},
		{"some rows were removed", func(r *report.Report, _ *report.Past) { r.People.Partial = true }, func(s *report.Story) { s.Reminded.Known = false }},
		{"some reminders were late", func(r *report.Report, _ *report.Past) { r.AfterOpening = 3 }, func(s *report.Story) { s.Reminded.Late = 3 }},
		{"coupons are left", func(r *report.Report, _ *report.Past) { r.Issued, r.SoldOutAfter = 400, 0 },
			func(s *report.Story) { s.Coupons.Issued, s.Coupons.GoneIn = 400, 0 }},
		{"orders have no amounts", func(r *report.Report, _ *report.Past) { r.Money = report.Money{} },
			func(s *report.Story) { s.Used.Revenue, s.Compared = 0, report.ComparedPart{} }},
		{"the other drop has another currency", func(_ *report.Report, p *report.Past) { p.Template.Currency = "EUR" },
			func(s *report.Story) { s.Compared = report.ComparedPart{} }},
		{"the other drop has no amounts", func(_ *report.Report, p *report.Past) { p.Money = report.Money{} },
			func(s *report.Story) { s.Compared = report.ComparedPart{} }},
		{"the drop is still open", func(r *report.Report, _ *report.Past) {
			r.Template.Stored, r.At = template.Published, r.Template.OpensAt.Add(time.Minute)
		},
			func(s *report.Story) { s.Compared = report.ComparedPart{} }},
	} {
		r := told()
		other := pastOf(r)
		want := whole
		c.change(&r, other)
		c.want(&want)
		r.Other = other
		if diff := cmp.Diff(want, r.Story()); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
	alone := whole
	alone.Compared = report.ComparedPart{}
	if diff := cmp.Diff(alone, told().Story()); diff != "" {
		t.Errorf("without another drop: %s", diff)
	}
}

// All stages have the booked users as their baseline. Changes add up to the last stage.
func TestFunnel(t *testing.T) {
	list := told().People.Funnel()
	want := []report.Stage{{"booked", 4000, 0, 1}, {"reminded", 3683, -317, 0.92075}, {"opened", 2100, -1583, 0.525}, {"claimed", 2200, 100, 0.55}, {"used", 600, -1600, 0.15}}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Error(diff)
	}
	for _, s := range (report.People{}).Funnel() {
		if s.People != 0 || s.Share != 0 {
			t.Errorf("%+v", s)
		}
	}
	r := told()
	r.Tally.Issued, r.Tally.Returned = 1000, 20
	if diff := cmp.Diff([]report.Stage{{"stock", 1000, 0, 1}, {"given", 980, -20, 0.98}, {"coupons_used", 612, -368, 0.612}}, r.CouponFunnel()); diff != "" {
		t.Error(diff)
	}
	r.Draw = &draw.Fairness{Draw: draw.Draw{Counts: draw.Counts{Entered: 5100, Left: 100, Won: 1000}}}
	if diff := cmp.Diff([]report.Stage{{"entries", 5000, 0, 1}, {"won", 1000, -4000, 0.2}, {"coupons_given", 980, -20, 0.196}, {"coupons_used", 612, -368, 0.1224}}, r.CouponFunnel()); diff != "" {
		t.Error(diff)
	}
}
