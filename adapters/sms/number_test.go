package sms_test

import (
	"slices"
	"testing"

	"dropbell/adapters/sms"
)

// Each form of a number is sent to as that number.
func TestForms(t *testing.T) {
	for number, want := range map[string][]string{
		"+447911123456":  {"+447911123456", "+4407911123456"},
		"+8613800000001": {"+8613800000001", "+86013800000001"},
		"+85291234567":   {"+85291234567"},
		"+393123456789":  {"+393123456789"},
		"":               {""},
	} {
		got := sms.Forms(number)
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", number, got, want)
		}
		for _, form := range got {
			if sent, err := sms.Number(form); number != "" && (err != nil || sent != number) {
				t.Errorf("%s is sent to %s, %v", form, sent, err)
			}
		}
	}
}
