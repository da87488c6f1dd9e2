// Package campaigns is the room of worker for campaigns: it starts campaigns, cuts their
// audiences, limits their rates and counts their results.
package campaigns

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	campaignsdb "dropbell/adapters/postgres/campaigns"
	"dropbell/adapters/watermill"
	"dropbell/app"
	"dropbell/domain/campaign"
	"dropbell/domain/event"
	"dropbell/domain/recipe"
	"dropbell/domain/task"
	"dropbell/worker/shell"
)

const (
	// cutFor bounds one attempt to cut an audience; the next attempt continues where this one
	// ended.
	cutFor = 10 * time.Minute
	// resultsEvery is how often a worker checks for campaigns whose results are due to be
	// counted; see [campaign.CountAgain].
	resultsEvery = 5 * time.Second
	// testsEvery is how often tests of two versions are looked for that are due for a decision.
	testsEvery = 5 * time.Second
)

// Deps are the dependencies of the room.
type Deps struct {
	Launcher *campaign.Launcher
	Rows     campaignsdb.Campaigns
	Recipes  *recipe.Keeper

	Registry *prometheus.Registry
}

// Roles returns what worker does for campaigns.
func Roles(d Deps) shell.Roles {
	c := newCensus(d)
	about := func(do func(context.Context, int64) error) func(context.Context, []byte) error {
		return shell.Decoded(func(ctx context.Context, c task.CampaignPayload) error { return do(ctx, c.CampaignID) })
	}
	return shell.Roles{
		Loops: []shell.Loop{{Role: shell.House, Name: "campaign results", Every: resultsEvery, Do: d.countResults},
			{Role: shell.House, Name: "campaign tests", Every: testsEvery, Do: d.decideTests}},
		Sweeps: []shell.Sweep{{Role: shell.Timers, Name: "sweep", Do: d.Launcher.Sweep}, {Role: shell.Timers, Name: "recipes", Do: d.recipes()}},
		Handlers: []shell.Handler{
			shell.On("campaigns", event.CampaignPublished, app.Decoded(func(ctx context.Context, _ string, e event.Campaign) error {
				return d.Launcher.Schedule(ctx, e)
			})),
			shell.On("campaigns", event.CampaignStarted, app.Decoded(func(ctx context.Context, _ string, e event.Campaign) error {
				return d.Launcher.Cut(ctx, e.CampaignID)
			}), watermill.Timeout(cutFor), watermill.Parallel(2)),
			shell.On("campaigns", event.CampaignChanged, app.Decoded(d.changed)),
		},
		Tasks: []shell.Task{
			{Name: task.StartCampaign, Do: about(d.Launcher.Start)},
			{Name: task.CutCampaign, Do: about(d.Launcher.Cut)},
		},
		Recounts: []func(context.Context) error{d.compareResults},
		Counts:   []shell.Count{{Take: c.count, Forget: c.forget}},
	}
}

// changed wakes the workers that deliver the batches which a change has made ready: batches of a
// resumed or stopped campaign, or of a test message.
func (d Deps) changed(ctx context.Context, id string, e event.Campaign) error {
	c, err := d.Rows.Campaign(ctx, e.CampaignID)
	if errors.Is(err, campaign.ErrNotFound) {
		return nil // a draft that was deleted since
	}
	if err != nil {
		return err
	}
	return d.Launcher.Wake(ctx, c.Channel, id)
}

// countResults counts the results of every campaign whose results are due.
func (d Deps) countResults(ctx context.Context) error {
	for {
		if counted, err := d.Rows.CountNext(ctx); err != nil || !counted {
			return err
		}
	}
}

// compareResults compares the final results that an earlier program counted with held-out users, as far as
// their orders are still known.
func (d Deps) compareResults(ctx context.Context) error {
	for {
		if found, err := d.Rows.CompareNext(ctx); err != nil || !found {
			return err
		}
	}
}

// decideTests decides every test that is due, and wakes the workers for the recipients who waited.
// Released batches are found again by the next round, so that nothing is lost if worker ends in
// between.
func (d Deps) decideTests(ctx context.Context) error {
	for {
		decided, err := d.Rows.DecideNext(ctx)
		if err != nil {
			return err
		}
		if !decided {
			break
		}
	}
	channels, err := d.Rows.ReleaseDecided(ctx)
	slices.Sort(channels)
	for _, c := range slices.Compact(channels) {
		if wake := d.Launcher.Wake(ctx, c, "test-"+strconv.FormatInt(d.Launcher.Now().Unix(), 10)); wake != nil {
			return errors.Join(err, wake)
		}
	}
	return err
}
