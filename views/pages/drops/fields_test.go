package drops

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/a-h/templ"

	"dropbell/domain/delivery"
	"dropbell/domain/staff"
	"dropbell/domain/template"
	"dropbell/musttest"
	"dropbell/views/i18n"
	"dropbell/views/pages/parts"
	"dropbell/views/static"
	"dropbell/views/ui"
)

// elsewhere are the fields that the head of the page shows, not the list of facts.
var elsewhere = map[string]bool{"name": true, "shop_number": true, "stock": true}

// TestEveryFieldIsShown: the form, the page, the history and both catalogues have each field that
// staff can set.
func TestEveryFieldIsShown(t *testing.T) {
	languages, err := i18n.Load()
	musttest.OK(t, err)
	assets, err := static.Load()
	musttest.OK(t, err)
	at := time.Date(2027, 1, 1, 12, 0, 0, 0, time.UTC)
	until, later := at.Add(48*time.Hour), at.Add(72*time.Hour)
	bases := []template.Spec{
		{Kind: template.ThresholdOff, AmountOff: 1, Threshold: 1, Currency: "CNY", Target: template.Product, Product: "a", OpensAt: at, ClosesAt: at.Add(time.Hour),
			ValidHours: 1, NotifyDays: 1, NotifyOver: 1, Obtain: template.ByClaim, ClaimMode: template.Durable, Stock: 10},
		{Kind: template.PercentOff, PercentOff: 1, MaxOff: 1, Currency: "CNY", Target: template.WholeShop, OpensAt: at, ClosesAt: at.Add(time.Hour),
			ValidUntil: &until, Obtain: template.ByClaim, ClaimMode: template.Durable, Stock: 10},
		{Kind: template.AmountOff, AmountOff: 1, Currency: "CNY", Target: template.WholeShop, OpensAt: at, ClosesAt: at.Add(time.Hour),
			ValidHours: 1, Obtain: template.ByClaim, ClaimMode: template.Durable, Stock: 10, Waitlist: template.OfferNext,
			Opening: template.Opening{OpeningMode: template.ByDraw}},
	}
	others := template.Spec{Name: "other", ShopNumber: 2, Description: "other", ClaimURL: "https://shop.example/other", Kind: template.AmountOff, AmountOff: 200, PercentOff: 2,
		MaxOff: 200, Threshold: 200, Currency: "EUR", Target: template.WholeShop, Product: "other", OpensAt: at.Add(time.Minute), ClosesAt: at.Add(2 * time.Hour), ValidHours: 2,
		ValidUntil: &later, NotifyDays: 2, NotifyOver: delivery.ChannelSetOf(delivery.SMS), Stock: 20, PerUserLimit: 2, HouseholdLimit: 2, Obtain: template.ByCode, ClaimMode: template.Gate, HoldOutPercent: 20, Protection: template.Strict,
		AcceptMinutes: 40, UseWithinHours: 5, RefundTo: template.RefundToStock,
		Stacking: template.Stacking{MaxPerOrder: 2, RefundRule: template.Recompute},
		Opening:  template.Opening{OpeningMode: template.ByDraw, AcceptHours: 3, EntryMinutes: 30, DrawSource: template.SourceDrand, DrawPublic: "other"}}
	for _, f := range template.Fields {
		if value := f.Of(&others); value.IsZero() && value.Kind() == reflect.String {
			value.SetString("other")
		}
	}
	for _, language := range languages.All() {
		ctx := ui.With(context.Background(), &ui.Frame{Locale: language, Languages: languages.All(), Assets: assets, Now: at, Zone: time.UTC})
		draw := func(c templ.Component) string {
			var b strings.Builder
			musttest.OK(t, c.Render(ctx, &b))
			return b.String()
		}
		facts := func(s template.Spec) string {
			return draw(Template{Drop: Drop{Template: template.Template{ID: 1, Spec: s, ShopTimezone: "UTC", Stored: template.Draft}}}.facts())
		}
		form := draw(TemplateForm{Values: map[string]string{}, Shops: []template.Shop{{Number: 2, Name: "Shop"}}}.form())
		for _, f := range template.Fields {
			if !language.Has("field." + f.Name) {
				t.Errorf("%s: field.%s is missing", language.Tag, f.Name)
			}
			if !strings.Contains(form, `name="`+f.Name+`"`) {
				t.Errorf("the form has no %s", f.Name)
			}
			shown := elsewhere[f.Name]
			for _, s := range bases {
				changed := s
				f.Of(&changed).Set(f.Of(&others))
				shown = shown || facts(s) != facts(changed)
				before, _ := json.Marshal(s)
				after, _ := json.Marshal(changed)
				lines := parts.Changes(staff.Record{Action: "template.edit", ObjectKind: "template", ObjectID: "1", Before: before, After: after})
				label := "field.template_" + f.Name
				if !language.Has(label) {
					label = "field." + f.Name
				}
				if table := draw(parts.ChangeTable(lines, time.UTC)); string(before) != string(after) && !strings.Contains(table, templ.EscapeString(language.T(label))) {
					t.Errorf("%s: the history of %s is %s", language.Tag, f.Name, table)
				}
			}
			if !shown {
				t.Errorf("the page has no %s", f.Name)
			}
		}
	}
}
