package template_test

import (
	"testing"
	"time"

	"dropbell/domain/template"
)

func TestSlots(t *testing.T) {
	taken := 0
	for minutes := -70; minutes <= 130; minutes++ {
		slot, ok := template.SlotOfMinutes(minutes)
		if want := minutes >= 5 && minutes <= 60 && minutes%5 == 0; ok != want {
			t.Errorf("%d minutes: %v", minutes, ok)
		}
		if !ok {
			continue
		}
		taken++
		if slot.Minutes() != minutes || slot.DueAt(opens) != opens.Add(-time.Duration(minutes)*time.Minute) {
			t.Errorf("%d minutes is slot %d, %d minutes, due %v", minutes, slot, slot.Minutes(), slot.DueAt(opens))
		}
	}
	all := template.AllSlots()
	if taken != template.Slots || len(all) != template.Slots || all[0] != 1 || all[11] != 12 {
		t.Errorf("%d slots, %v", taken, all)
	}
}
