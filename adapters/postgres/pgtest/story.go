package pgtest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
)

// Story formats a timeline as one line. Successive attempts and outcomes are in the order of
// their channels, because batches that are sent concurrently end in any order.
func Story(steps []reminder.Step) string {
	var words []string
	steps = slices.Clone(steps)
	for i := 0; i < len(steps); i++ {
		end := i + 1
		for end < len(steps) && ofDelivery(steps[i]) && ofDelivery(steps[end]) {
			end++
		}
		slices.SortStableFunc(steps[i:end], func(a, b reminder.Step) int { return cmp.Compare(channelOf(a), channelOf(b)) })
		i = end - 1
	}
	for _, s := range steps {
		word := string(s.Kind)
		if s.Reminder != nil {
			word += fmt.Sprintf(" %s%d", s.Reminder.Channel, s.Reminder.Slot.Minutes())
		}
		if s.Message != "" && s.Message != delivery.KindReminder {
			word += " " + string(s.Message)
		}
		if s.Attempts > 0 {
			word += fmt.Sprintf(" %d×", s.Attempts)
		}
		for _, more := range []string{string(s.Outcome), s.Reason, s.Detail} {
			if more != "" {
				word += " " + more
			}
		}
		words = append(words, word)
	}
	return strings.Join(words, ", ")
}

func channelOf(s reminder.Step) delivery.Channel {
	if s.Reminder == nil {
		return 0
	}
	return s.Reminder.Channel
}

func ofDelivery(s reminder.Step) bool {
	return s.Kind == reminder.StepOutcome || s.Kind == reminder.StepTried
}
