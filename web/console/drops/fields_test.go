package drops

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dropbell/domain/delivery"
	"dropbell/domain/template"
)

// specs are valid specs; every field is set in at least one.
func specs() []template.Spec {
	opens := time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
	until := opens.Add(72 * time.Hour)
	a := template.Spec{ShopNumber: 10, Kind: template.ThresholdOff, AmountOff: 1050, Threshold: 5000, Currency: "CNY", Target: template.Product, Product: "Tea",
		Stock: 100, PerUserLimit: 1, OpensAt: opens, ClosesAt: opens.Add(30 * time.Hour), ValidHours: 48, Obtain: template.ByClaim, ClaimMode: template.Durable, HoldOutPercent: 15, Waitlist: template.NoWaitlist, RefundTo: template.RefundToStock, Protection: template.Unprotected,
		Stacking:   template.Stacking{StackGroup: "welcome", StacksWith: "member other", MaxPerOrder: 2, RefundRule: template.Recompute},
		Opening:    template.Opening{OpeningMode: template.ByDraw, EntryMinutes: 30, DrawSource: template.SourcePublic, DrawPublic: "Lotto of 2 January 2027", AcceptHours: 24},
		NotifyDays: template.NoticeDaysOf(3, 1), NotifyOver: delivery.ChannelSetOf(delivery.App, delivery.SMS)}
	for _, f := range template.Fields {
		if value := f.Of(&a); value.Kind() == reflect.String && value.String() == "" {
			value.SetString("https://shop.example/" + f.Name)
		}
	}
	b := a
	b.Kind, b.AmountOff, b.PercentOff, b.MaxOff = template.PercentOff, 0, 20, 3000
	b.ValidHours, b.ValidUntil = 0, &until
	b.Opening, b.Waitlist, b.Protection = template.Opening{OpeningMode: template.FirstCome}, template.OfferNext, template.Standard
	b.AcceptMinutes, b.UseWithinHours, b.HouseholdLimit = 45, 24, 3
	return []template.Spec{a, b}
}

// TestEveryFieldIsTypedAndExported: the form reads the spec that it shows, and the file has a
// value for each field that is set.
func TestEveryFieldIsTypedAndExported(t *testing.T) {
	shops := []template.Shop{{Number: 10, Name: "Tea House", Timezone: "Asia/Shanghai"}}
	file, set := templateFile(time.Now()), map[string]bool{}
	for _, s := range specs() {
		d := template.Template{ID: 1, Spec: s, ShopName: "Tea House", ShopTimezone: "Asia/Shanghai", Stored: template.Draft}
		got, broken := readSpec(valuesOf(d), shops, time.UTC)
		if diff := cmp.Diff(s, got); diff != "" || broken != nil {
			t.Errorf("the form reads another spec than it shows: %v\n%s", broken, diff)
		}
		cells := map[string]any{}
		for i, cell := range file.Cells(comparedTemplate{Template: d}) {
			cells[file.Head[i]] = cell
		}
		for _, f := range template.Fields {
			if f.Of(&s).IsZero() {
				continue
			}
			set[f.Name] = true
			if cells[f.Name] == nil || reflect.ValueOf(cells[f.Name]).IsZero() {
				t.Errorf("the file has no %s", f.Name)
			}
		}
	}
	for _, name := range template.Fields.Names() {
		if !set[name] {
			t.Errorf("no spec of the test sets %s", name)
		}
	}
}
