package template

import (
	"strconv"
	"strings"

	"dropbell/domain/delivery"
	"dropbell/domain/fault"
)

// MaxNoticeDays is the farthest that a notice can be from a coupon's expiry.
const MaxNoticeDays = 30

// NoticeDays is the set of days before the expiry of a coupon on which its owner gets a notice.
// Bit d is d days before; bit 0 is the last day itself.
type NoticeDays uint32

// invalidDays marks a list with an invalid day.
const invalidDays = NoticeDays(1) << 31

// NoticeDaysOf returns the set of the given days. The set is invalid if a day is not between 0
// and [MaxNoticeDays].
func NoticeDaysOf(days ...int) (n NoticeDays) {
	for _, d := range days {
		if d < 0 || d > MaxNoticeDays {
			return invalidDays
		}
		n |= 1 << d
	}
	return n
}

// List returns the days, the farthest from the expiry first.
func (n NoticeDays) List() []int {
	var list []int
	for d := MaxNoticeDays; d >= 0; d-- {
		if n&(1<<d) != 0 {
			list = append(list, d)
		}
	}
	return list
}

// String writes the days as the form shows them: "7, 3, 1".
func (n NoticeDays) String() string {
	var parts []string
	for _, d := range n.List() {
		parts = append(parts, strconv.Itoa(d))
	}
	return strings.Join(parts, ", ")
}

// ParseNoticeDays reads the text that [NoticeDays.String] returns. Any other text gives an
// invalid set, which [Spec.Check] refuses.
func ParseNoticeDays(s string) NoticeDays {
	var days []int
	for _, part := range words(s) {
		d, err := strconv.Atoi(part)
		if err != nil {
			return invalidDays
		}
		days = append(days, d)
	}
	return NoticeDaysOf(days...)
}

// ChannelNames writes a set of channels as the form shows it: "app, email".
func ChannelNames(set delivery.ChannelSet) []string {
	list := []string{}
	for _, c := range delivery.AllChannels() {
		if set.Has(c) {
			list = append(list, c.String())
		}
	}
	return list
}

// invalidChannels has a bit that is no channel's.
const invalidChannels = delivery.ChannelSet(1) << 7

// ParseChannels returns the set of the named channels. An unknown name gives an invalid set,
// which [Spec.Check] refuses.
func ParseChannels(names ...string) (set delivery.ChannelSet) {
	for _, name := range names {
		for _, part := range words(name) {
			c, err := delivery.ParseChannel(part)
			if err != nil {
				return invalidChannels
			}
			set |= delivery.ChannelSetOf(c)
		}
	}
	return set
}

func words(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' || r == '，' || r == '、' })
}

// WithNotices returns s with notices on these days over these channels; no channel = the app's
// inbox. Without days the channels are cleared too, so that equal specs compare as equal.
func (s Spec) WithNotices(days NoticeDays, over delivery.ChannelSet) Spec {
	if days == 0 {
		over = 0
	} else if over == 0 {
		over = delivery.ChannelSetOf(delivery.App)
	}
	s.NotifyDays, s.NotifyOver = days, over
	return s
}

func (s Spec) checkNotices(e *fault.Fields) {
	if s.NotifyDays >= invalidDays {
		e.Add("notify_days", "rule.notify_days", "must be days between 0 and %d before the expiry", MaxNoticeDays)
	}
	if s.NotifyOver >= 1<<delivery.Channels {
		e.Add("notify_channels", "rule.notify_channels", "must be some of app, email, sms, webpush, webhook")
	} else if (s.NotifyDays == 0) != (s.NotifyOver == 0) {
		e.Add("notify_channels", "rule.notify_channels", "must be some of app, email, sms, webpush, webhook")
	}
}
