package reminder_test

import (
	"slices"
	"testing"

	"dropbell/domain/reminder"
	"dropbell/domain/template"
)

func TestConsentsAreBits(t *testing.T) {
	c := reminder.StoredConsents(1<<0 | 1<<11 | 1<<12 | 1<<14)
	if got := c.Minutes(); !slices.Equal(got, []int{60, 5}) {
		t.Errorf("minutes %v", got)
	}
	for s := template.Slot(0); s <= 16; s++ {
		if want := s == 1 || s == 12; c.Has(s) != want {
			t.Errorf("slot %d: %v", s, c.Has(s))
		}
	}
	if got := reminder.Consents(0).Minutes(); got == nil || len(got) != 0 {
		t.Errorf("none are %v", got)
	}
}
