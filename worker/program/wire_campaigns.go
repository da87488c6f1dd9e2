package program

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/google/uuid"

	"dropbell/adapters/asynq"
	"dropbell/adapters/postgres"
	audiencedb "dropbell/adapters/postgres/audience"
	campaignsdb "dropbell/adapters/postgres/campaigns"
	"dropbell/adapters/watermill"
	"dropbell/app"
	"dropbell/domain/campaign"
	"dropbell/domain/coupon"
	"dropbell/domain/delivery"
	"dropbell/domain/event"
	"dropbell/domain/fault"
	"dropbell/domain/task"
	"dropbell/domain/user"
)

const (
	cutLease = 10 * time.Second // a silent process's cut is taken over after this
	// cutFor bounds one attempt to cut an audience; the next goes on there.
	cutFor = 10 * time.Minute
	// rangeHandlers is how many messages of ranges one worker stores at a time.
	rangeHandlers = 2
	// resultsEvery is how often a worker looks whether it is time to count
	// what a campaign led to; see [campaign.CountAgain].
	resultsEvery = 5 * time.Second
)

func (p *program) newLauncher() *campaign.Launcher {
	return &campaign.Launcher{Store: p.campaigns(), Wire: rangeWire{p.bus}, Queue: p.queue, Now: app.Clock, LeaseFor: cutLease}
}

func (p *program) campaigns() campaignsdb.Campaigns {
	return campaignsdb.NewCampaigns(p.DB, audiencedb.NewSegments(p.DB))
}

// guards are asked about the recipients of batches right before sending.
func (p *program) guards() map[delivery.Kind]delivery.Guard {
	return map[delivery.Kind]delivery.Guard{
		delivery.KindCampaign: &campaign.Guard{Store: p.campaigns(), Granter: p.granter()},
		delivery.KindNotice:   coupon.Guard{Store: postgres.NewNotices(p.DB)},
	}
}

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

// handleCampaigns turns the events of campaigns into timers, ranges, batches
// and work.
func (p *program) handleCampaigns() {
	p.launcher = p.newLauncher()
	p.bus.Handle("campaigns", event.CampaignPublished, app.Decoded(func(ctx context.Context, _ string, e event.Campaign) error {
		return p.launcher.Schedule(ctx, e)
	}))
	p.bus.Handle("campaigns", event.CampaignStarted, app.Decoded(func(ctx context.Context, _ string, e event.Campaign) error {
		return p.launcher.Cut(ctx, e.CampaignID)
	}), watermill.Timeout(cutFor), watermill.Parallel(2))
	p.bus.Handle("campaigns", event.CampaignRangesCut, app.Decoded(func(ctx context.Context, _ string, r event.CampaignRanges) error {
		return p.launcher.Batches(ctx, r)
	}), watermill.Timeout(time.Minute), watermill.Parallel(rangeHandlers))
	p.bus.Handle("campaigns", event.CampaignChanged, app.Decoded(p.campaignChanged))
}

// campaignChanged wakes workers for batches that a change has made ready: a
// resumed or stopped campaign's, a test message.
func (p *program) campaignChanged(ctx context.Context, id string, e event.Campaign) error {
	c, err := p.campaigns().Campaign(ctx, e.CampaignID)
	if err != nil {
		return err
	}
	return p.launcher.Wake(ctx, c.Channel, id)
}

func (p *program) campaignTasks() {
	p.servers.Handle(task.StartCampaign, campaignTask(p.launcher.Start))
	p.servers.Handle(task.CutCampaign, campaignTask(p.launcher.Cut))
}

func campaignTask(do func(context.Context, int64) error) asynq.Handler {
	return func(ctx context.Context, payload []byte) error {
		var c task.CampaignPayload
		if err := json.Unmarshal(payload, &c); err != nil {
			return fault.ErrInvalid.Because("payload: %v", err)
		}
		return do(ctx, c.CampaignID)
	}
}

func (p *program) granter() campaign.Granter { return granter{p.claims.All()} }

// linkURL returns the tracked link of one recipient, as web serves it; nil
// without a secret to sign the links with.
func (p *program) linkURL() func(int64, user.ID, int) string {
	return campaign.Links{Links: user.NewLinks(p.Config.LinkSecret)}.Addresses(p.Config.PublicURL)
}

// countResults counts the results of every campaign for which it is time.
func (p *program) countResults(ctx context.Context) error {
	for {
		if counted, err := p.campaigns().CountNext(ctx); err != nil || !counted {
			return err
		}
	}
}
