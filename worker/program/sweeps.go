package program

import (
	"context"

	"dropbell/adapters/postgres"
	audiencedb "dropbell/adapters/postgres/audience"
	campaignsdb "dropbell/adapters/postgres/campaigns"
	couponsdb "dropbell/adapters/postgres/coupons"
	deliverydb "dropbell/adapters/postgres/delivery"
	dropsdb "dropbell/adapters/postgres/drops"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/domain/alert"
	"dropbell/domain/delivery"
	"dropbell/worker/shell"
)

// sweeps are what this process looks for every second; each finds nothing, or
// what a queue or an event should have brought.
func (p *program) sweeps(watcher *alert.Watcher) (list []shell.Sweep) {
	for _, s := range p.roles.Sweeps {
		if p.has(s.Role) {
			list = append(list, s)
		}
	}
	add := func(r shell.Role, name string, do func(context.Context) error) {
		if p.has(r) {
			list = append(list, shell.Sweep{Role: r, Name: name, Do: do})
		}
	}
	add(shell.Timers, "sweep", p.sweep)
	add(shell.Timers, "timers", p.keepTimers())
	add(shell.Timers, "live activities", p.activities.sweep)
	if p.serves(delivery.SMS) {
		add(shell.Delivery, "phone codes", p.codes.Sweep)
	}
	add(shell.Events, "webhooks", p.hooks.sweep)
	add(shell.House, "alert deliveries", watcher.Deliver)
	if p.notifier != nil {
		add(shell.House, "alert pushes", p.notifier.Deliver)
	}
	add(shell.Jobs, "jobs", p.jobs.Sweep)
	return list
}

// sweepsWait are the questions that a sweep has something to do if one is answered with yes.
var sweepsWait = map[string][]postgres.Question{
	"sweep":            {dropsdb.SlotsWait, dropsdb.AnnouncementsWait, deliverydb.BatchesWait, campaignsdb.CampaignsWait, dropsdb.TemplatesWait},
	"test messages":    {deliverydb.ChannelTestsWait},
	"phone codes":      {audiencedb.VerificationsWait},
	"coupons":          {couponsdb.CouponsWait},
	"notices":          {couponsdb.NoticesWait},
	"alert deliveries": {workdb.AlertDeliveriesWait},
	"alert pushes":     {workdb.AlertPushesWait},
	"early receipts":   {deliverydb.EarlyReceiptsWait},
	"gate keeper":      {couponsdb.GatesWait},
	"jobs":             {workdb.JobsWait},
	"dead letters":     {deliverydb.DeadLetterJobsWait},
}
