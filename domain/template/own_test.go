package template_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"dropbell/domain/money"
	"dropbell/domain/staff"
	"dropbell/domain/template"
)

// anySpec fills every field of a discount and a target, whatever the kind.
func anySpec(t *rapid.T) template.Spec {
	s := validSpec()
	s.Kind = rapid.SampledFrom([]template.Kind{template.AmountOff, template.ThresholdOff, template.PercentOff}).Draw(t, "kind")
	s.AmountOff = money.Amount(rapid.Int64Range(1, 100).Draw(t, "amount off"))
	s.Threshold = money.Amount(rapid.Int64Range(100, 200).Draw(t, "threshold"))
	s.PercentOff = rapid.IntRange(1, 100).Draw(t, "percent off")
	s.MaxOff = money.Amount(rapid.Int64Range(1, 100).Draw(t, "max off"))
	s.Target = rapid.SampledFrom([]template.Target{template.WholeShop, template.Product}).Draw(t, "target")
	s.Product = "tea"
	return s
}

// The stored spec has only the fields that belong to its kind and target, whatever fields were
// sent.
func TestOnlyTheKindsOwnFieldsAreStored(t *testing.T) {
	own := map[template.Kind]string{template.AmountOff: "amount", template.ThresholdOff: "amount threshold", template.PercentOff: "threshold percent most"}
	rapid.Check(t, func(t *rapid.T) {
		service, shelf := serviceAt(template.Draft)
		by := staff.System()
		_, err := service.Create(t.Context(), by, anySpec(t), "")
		for range rapid.IntRange(0, 3).Draw(t, "edits") {
			if err == nil {
				_, err = service.Edit(t.Context(), by, 7, template.Edition{Version: 3, Spec: anySpec(t)})
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range shelf.changes {
			s := c.Template.Spec
			for name, there := range map[string]bool{"amount": s.AmountOff != 0, "threshold": s.Threshold != 0, "percent": s.PercentOff != 0, "most": s.MaxOff != 0} {
				if there != strings.Contains(own[s.Kind], name) {
					t.Errorf("%s has %s: %v", s.Kind, name, there)
				}
			}
			if (s.Product == "tea") != (s.Target == template.Product) {
				t.Errorf("for the %s: product %q", s.Target, s.Product)
			}
			if c.Entry.After.(template.Spec) != s {
				t.Error("the audit log keeps something else")
			}
		}
	})
}

// A template that was published with more than its own can still be edited.
func TestWhatOlderProgramsKeptIsNoPromise(t *testing.T) {
	tpl, now := inState(template.Scheduled)
	tpl.Threshold, tpl.PercentOff, tpl.MaxOff, tpl.Product, tpl.Currency = 5000, 20, 100, "tea", "ZZZ"
	s := tpl.Spec
	s.Name = "Another name"
	got, err := tpl.Edit(s, now)
	if err != nil || got.Name != "Another name" || got.Spec != got.Own() {
		t.Errorf("%+v %v", got.Spec, err)
	}
	s.Currency = "YYY"
	if _, err := tpl.Edit(s, now); err == nil {
		t.Error("its currency became another one that does not exist")
	}
	tpl.Stored = template.Draft
	if _, err := tpl.Edit(tpl.Spec, now); err == nil {
		t.Error("a draft kept a currency that does not exist")
	}
}

func TestARefusedStepSaysWhatItNeeds(t *testing.T) {
	draft, now := inState(template.Draft)
	for want, step := range map[string]func() error{
		"the template is draft; this needs scheduled, open, sold_out or paused": func() error { _, err := draft.Close(now); return err },
		"the template is draft; this needs paused":                              func() error { _, err := draft.Resume(now); return err },
	} {
		if err := step(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
