package campaigns

import (
	"context"
	"time"

	"dropbell/domain/campaign"
	"dropbell/domain/delivery"
	"dropbell/views/ui"
)

// waits reports whether there are messages that the channel could still take.
func (p Campaign) waits() bool {
	return p.State == campaign.Running && (p.Progress.InFlight > 0 || !p.Progress.CutDone)
}

// waiting returns how many recipients in flight are in quiet hours. The two numbers were not
// counted at the same moment, so the smaller number is used.
func (p Campaign) waiting() int64 { return min(p.Waiting.Users, p.Progress.InFlight) }

// undecided returns how many recipients wait for the version that wins the test.
func (p Campaign) undecided() int64 {
	if p.Content.Test == nil || p.StartedAt == nil {
		return 0
	}
	return min(p.Waiting.Undecided, p.Progress.InFlight)
}

// sending are the recipients by outcome; the recipients who wait for the test are not in flight.
func (p Campaign) sending() delivery.Counts {
	c := p.Progress.Counts
	c.InFlight -= p.undecided()
	if out, held := p.Results.Group(delivery.HeldOut); held {
		c.HeldOut = min(c.Skipped, out.Assigned)
	}
	return c
}

// decision returns the time at which the test is decided.
func (p Campaign) decision() time.Time {
	return p.StartedAt.Add(p.Content.Test.Lasts()).Truncate(time.Minute)
}

func (p Campaign) waitingShare(ctx context.Context) string {
	if n := p.waiting(); n > 0 {
		return ui.T(ctx, "campaign.waiting.of", n)
	}
	return ""
}
