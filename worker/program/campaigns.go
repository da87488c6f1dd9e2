package program

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/google/uuid"

	"dropbell/adapters/watermill"
	"dropbell/domain/campaign"
	"dropbell/domain/event"
)

const (
	cutLease = 10 * time.Second // a silent process's cut is taken over after this
	// cutFor bounds one attempt to cut an audience; the next continues there.
	cutFor = 10 * time.Minute
	// rangeHandlers is how many messages of ranges one worker stores at a time.
	rangeHandlers = 2
	// resultsEvery is how often a worker looks whether it is time to count
	// what a campaign led to; see [campaign.CountAgain].
	resultsEvery = 5 * time.Second
)

// rangeWire publishes ranges as events. They bypass the outbox: each is
// stored already and published again until its batches exist.
type rangeWire struct{ bus *watermill.Bus }

// Publish implements [campaign.Wire].
func (w rangeWire) Publish(ctx context.Context, ms []campaign.Message) error {
	events := make([]watermill.Event, len(ms))
	for i, m := range ms {
		id := uuid.NewSHA1(uuid.Nil, []byte(strconv.FormatInt(m.CampaignID, 10)+":"+strconv.Itoa(m.Seq)))
		events[i] = watermill.Event{ID: id.String(), Topic: event.CampaignRangesCut, Payload: m.Payload}
	}
	return w.bus.Publish(ctx, events)
}

// campaignChanged wakes workers for batches that a change has made ready: a
// resumed or stopped campaign's, a test message.
func (p *program) campaignChanged(ctx context.Context, id string, e event.Campaign) error {
	c, err := p.campaigns.Campaign(ctx, e.CampaignID)
	if errors.Is(err, campaign.ErrNotFound) {
		return nil // a draft that was deleted since
	}
	if err != nil {
		return err
	}
	return p.launcher.Wake(ctx, c.Channel, id)
}

// countResults counts the results of every campaign for which it is time.
func (p *program) countResults(ctx context.Context) error {
	for {
		if counted, err := p.campaigns.CountNext(ctx); err != nil || !counted {
			return err
		}
	}
}
