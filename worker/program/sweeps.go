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
)

// sweeps are what this process looks for every second; each finds nothing, or
// what a queue or an event should have brought.
func (p *program) sweeps(watcher *alert.Watcher) (list []chore) {
	add := func(r role, name string, do func(context.Context) error, waits ...postgres.Question) {
		if p.has(r) {
			list = append(list, chore{name, do, waits})
		}
	}
	add(timersRole, "sweep", p.sweep, dropsdb.SlotsWait, dropsdb.AnnouncementsWait, deliverydb.BatchesWait, campaignsdb.CampaignsWait, dropsdb.TemplatesWait)
	add(timersRole, "timers", p.keepTimers())
	add(timersRole, "live activities", p.activities.sweep)
	add(timersRole, "test messages", p.tester.Sweep, deliverydb.ChannelTestsWait)
	if p.serves(delivery.SMS) {
		add(deliveryRole, "phone codes", p.codes.Sweep, audiencedb.VerificationsWait)
	}
	add(eventsRole, "webhooks", p.hooks.sweep)
	add(eventsRole, "wallets", p.wallets.sweep)
	add(houseRole, "coupons", p.sweepCoupons, couponsdb.CouponsWait)
	add(houseRole, "notices", p.couponLife.notices.Sweep, couponsdb.NoticesWait)
	add(houseRole, "alert deliveries", watcher.Deliver, workdb.AlertDeliveriesWait)
	if p.notifier != nil {
		add(houseRole, "alert pushes", p.notifier.Deliver, workdb.AlertPushesWait)
	}
	add(houseRole, "early receipts", p.matcher.Run, deliverydb.EarlyReceiptsWait)
	for range gateSweeps {
		add(gateRole, "gate keeper", p.gate.keeper.Sweep, couponsdb.GatesWait)
	}
	add(jobsRole, "jobs", p.jobs.Sweep, workdb.JobsWait)
	add(jobsRole, "dead letters", p.deadLetters.Step, deliverydb.DeadLetterJobsWait)
	return list
}
