package drops

import (
	"context"
	"fmt"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/views/ui"
)

// A WaveCard shows how one slot was sent, second by second: its first minute as a strip, and
// the whole time where that took longer.
type WaveCard struct {
	// Slots are those with messages, the first to fire first.
	Slots []reminder.Row
	// Chosen is the slot that Minute and Wave are of.
	Chosen reminder.Row
	// Minute is the first minute. Later are the messages per channel after it.
	Minute reminder.Wave
	Later  [delivery.Channels]int64
	Wave   reminder.Wave
	// Asked is whether the viewer chose the slot, Grows whether slots still fire.
	Asked, Grows bool
	// Replay draws the minute again as it went.
	Replay bool
	// Template is the number of the drop.
	Template int64
	Zone     *time.Location
}

// over reports whether the first minute has passed, so that it can be replayed.
func (c WaveCard) over(now time.Time) bool {
	return len(c.Minute.Sent) > 0 && !now.Before(c.Minute.From.Add(reminder.MinuteSteps*time.Second))
}

// sentOut reports whether the slot has nothing on the way: the strip ends with its last message.
func (c WaveCard) sentOut() bool {
	sum := c.Chosen.Counts()
	return sum.Reserved > 0 && sum.InFlight == 0
}

// drawn is the part of the first minute that the strip shows: the whole minute while messages are on the way and in a replay, and
// afterwards the seconds in which messages were sent.
func (c WaveCard) drawn(now time.Time) reminder.Wave {
	w := c.Minute
	if !c.sentOut() && !c.over(now) || c.Replay || c.longer() {
		return w
	}
	w.Sent = w.Sent[:min(len(w.Sent), c.lastSecond())]
	return w
}

// lastSecond is the number of seconds of the first minute until the last message.
func (c WaveCard) lastSecond() (last int) {
	for i, column := range c.Minute.Sent {
		if column != [delivery.Channels]int64{} {
			last = i + 1
		}
	}
	return last
}

// atOnce is the number of seconds in which all messages were sent, if these are too few for a strip; 0 = they are not.
func (c WaveCard) atOnce() int {
	if last := c.lastSecond(); last <= 2 && c.sentOut() && !c.Replay && !c.longer() {
		return last
	}
	return 0
}

// longer reports whether messages were sent after the first minute.
func (c WaveCard) longer() bool { return c.later() > 0 }

func (c WaveCard) later() (n int64) {
	for _, l := range c.Later {
		n += l
	}
	return n
}

// channels are those with messages.
func (c WaveCard) channels() (list []delivery.Channel) {
	for ch, n := range c.Wave.Totals() {
		if n > 0 {
			list = append(list, delivery.Channel(ch))
		}
	}
	return list
}

func span(w reminder.Wave) time.Duration { return time.Duration(len(w.Sent)) * w.Step }

// peakOf is the channel's largest column.
func peakOf(w reminder.Wave, ch delivery.Channel) (n int64) {
	for _, column := range w.Sent {
		n = max(n, column[ch])
	}
	return n
}

// perSecond is the channel's largest column as a rate.
func (c WaveCard) perSecond(ch delivery.Channel) float64 {
	return float64(peakOf(c.Wave, ch)) / c.Wave.Step.Seconds()
}

// ofReserved says how many of the slot's reminders are sent on the channel.
func (c WaveCard) ofReserved(ctx context.Context, ch delivery.Channel) string {
	counts := c.Chosen.Cells[ch].Counts
	return ui.T(ctx, "wave.of", counts.Sent, counts.Reserved)
}

func (c WaveCard) slotURL(r reminder.Row, replay bool) string {
	url := fmt.Sprintf("/templates/%d?tab=live&slot=%d", c.Template, r.ID)
	if replay {
		url += "&replay=1"
	}
	return url + "#wave"
}

// pathOf draws the channel's columns on a plane of columns × 100.
func pathOf(w reminder.Wave, ch delivery.Channel) string {
	d, most := "M0 100", max(1, peakOf(w, ch))
	for i, column := range w.Sent {
		y := 100 - 100*float64(column[ch])/float64(most)
		d += fmt.Sprintf("V%.1fH%d", y, i+1)
	}
	return d + "V100Z"
}

func slotName(ctx context.Context, r reminder.Row) string {
	name := ui.T(ctx, "slot.short", r.Slot.Slot.Minutes())
	if doors := ui.SlotDoors(ctx, r.Slot); doors != "" {
		name += " " + doors
	}
	if r.Round > 0 {
		name += " " + ui.SlotRound(ctx, r.Slot)
	}
	return name
}

// liveURL is the address from which the card is loaded again: for the requested slot, or for
// the slot that fired last.
func (c WaveCard) liveURL() string {
	url := fmt.Sprintf("/templates/%d/wave", c.Template)
	if c.Asked {
		url += fmt.Sprintf("?slot=%d", c.Chosen.ID)
	}
	return url
}
