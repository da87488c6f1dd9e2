package work

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"dropbell/adapters/lookup"
	workdb "dropbell/adapters/postgres/work"
	"dropbell/adapters/watermill"
	"dropbell/app"
	"dropbell/domain/event"
	"dropbell/domain/event/hook"
	"dropbell/domain/task"
	"dropbell/worker/shell"
)

const (
	// HookEndpoints is how many endpoints a worker sends to at a time.
	HookEndpoints = 64
	// hookHandlers is how many events of one topic are stored at a time, by groups.
	hookHandlers = 16
	// openedAtOnce and issuedAtOnce bound the drops and coupons that one step of a sweep reads.
	openedAtOnce = 100
	issuedAtOnce = 5000
	// skipEvery is how often the horizon of issued coupons moves forward while no endpoint of a
	// shop subscribes to issued coupons.
	skipEvery = 10 * time.Second
)

// Hooks turns events of the bus into webhook events for the servers of shops, and sends them.
type Hooks struct {
	log     *slog.Logger
	events  *workdb.HookEvents
	store   workdb.Hooks
	wants   *lookup.Wants
	queue   shell.Queue
	sending *hook.Deliverer
	metrics *hookMetrics
	skipped time.Time // when skipIssued last worked; of the sweep alone
}

// NewHooks returns what tells the servers of shops. It sets what sending calls.
func NewHooks(events *workdb.HookEvents, store workdb.Hooks, sending *hook.Deliverer, queue shell.Queue, r *prometheus.Registry, log *slog.Logger) *Hooks {
	h := &Hooks{log: log, events: events, store: store, wants: &lookup.Wants{Load: store.Wanted}, queue: queue, sending: sending, metrics: newHookMetrics(r)}
	sending.Observe = h.metrics.attempted
	return h
}

// handlers handle the bus events of which an endpoint of a shop can be told. While no endpoint
// subscribes to a type of event, such an event is only acknowledged.
func (h *Hooks) handlers() (list []shell.Handler) {
	handle := func(topic string, do watermill.HandlerFunc, options ...watermill.Option) {
		list = append(list, shell.On("hooks", topic, do, options...))
	}
	at := watermill.Parallel(hookHandlers)
	for _, topic := range []string{event.TemplatePublished, event.TemplateMoved, event.TemplateClosed, event.TemplateCancelled} {
		handle(topic, app.Decoded(func(ctx context.Context, id string, e event.Template) error {
			if x, ok := hook.OfTemplate(topic, e); ok && h.wants.Any(ctx, x.Type) {
				return h.store1(ctx, id, x)
			}
			return nil
		}))
	}
	handle(event.ReservationsListed, app.Decoded(func(ctx context.Context, id string, e event.ReservationList) error {
		return h.store1(ctx, id, hook.OfReservations(e)...)
	}), at)
	handle(event.CouponsIssued, app.Decoded(h.issued))
	ofCoupons := func(ctx context.Context) bool { return h.wants.Any(ctx, hook.CouponSteps...) }
	handle(event.CouponsChanged, app.DecodedIf(ofCoupons, func(ctx context.Context, id string, e event.CouponChanges) error {
		return h.changed(ctx, id, e.Changes)
	}), at)
	handle(event.CouponChanged, app.Decoded(func(ctx context.Context, id string, e event.Coupon) error {
		return h.changed(ctx, id, []event.Coupon{e})
	}))
	handle(event.ExpiredListed, app.Decoded(func(ctx context.Context, id string, e event.ExpiredList) error {
		return h.store1(ctx, id, hook.OfExpired(e)...)
	}))
	handle(event.BudgetReached, app.Decoded(func(ctx context.Context, id string, e event.Budget) error {
		if !h.wants.Any(ctx, hook.BudgetReached) {
			return nil
		}
		return h.store1(ctx, id, hook.OfBudget(e))
	}))
	for topic, of := range map[string]func(event.Draw) hook.Event{event.DrawSealed: hook.OfSeal, event.DrawDrawn: hook.OfDraw} {
		handle(topic, app.Decoded(func(ctx context.Context, id string, e event.Draw) error {
			if x := of(e); h.wants.Any(ctx, x.Type) {
				return h.store1(ctx, id, x)
			}
			return nil
		}))
	}
	handle(event.EntriesListed, app.Decoded(func(ctx context.Context, id string, e event.EntryList) error {
		return h.store1(ctx, id, hook.OfEntries(e)...)
	}))
	handle(event.WaitersListed, app.Decoded(func(ctx context.Context, id string, e event.WaiterList) error {
		return h.store1(ctx, id, hook.OfWaiters(e)...)
	}))
	handle(event.CampaignChanged, app.Decoded(func(ctx context.Context, id string, e event.Campaign) error {
		if e.State != "finished" || !h.wants.Any(ctx, hook.CampaignFinished) {
			return nil
		}
		d, finished, err := h.events.Finished(ctx, e.CampaignID)
		if err != nil || !finished {
			return err
		}
		return h.store1(ctx, id, hook.OfCampaign(d))
	}))
	handle(event.BatchFinished, app.Decoded(func(ctx context.Context, id string, e event.Batch) error {
		if !h.wants.Any(ctx, hook.DeliveryDead) {
			return nil
		}
		d, err := h.events.Dead(ctx, e.BatchID)
		if err != nil || len(d.Items) == 0 {
			return err
		}
		return h.store1(ctx, id, hook.OfDead(d, e.At)...)
	}), watermill.Ahead())
	return list
}

// changed makes webhook events for changed coupons.
func (h *Hooks) changed(ctx context.Context, id string, changes []event.Coupon) error {
	var list []hook.Event
	for _, c := range changes {
		if x, ok := hook.OfCoupon(c); ok && h.wants.Any(ctx, x.Type) {
			list = append(list, x)
		}
	}
	return h.store1(ctx, id, list...)
}

// issued makes webhook events for drops that the issued coupons have sold out. The event's total
// may be the total of the stock before a change, so the row is read.
func (h *Hooks) issued(ctx context.Context, id string, e event.Coupons) error {
	if !h.wants.Any(ctx, hook.DropSoldOut) {
		return nil
	}
	var list []hook.Event
	for _, i := range e.Issued {
		last, err := h.events.SoldOutBy(ctx, i.TemplateID, i.Total)
		if err != nil {
			return err
		}
		if last {
			list = append(list, hook.OfIssue(i, e.At))
		}
	}
	return h.store1(ctx, id, list...)
}

// store1 stores the webhook events of one bus event and wakes the workers that send them. If an
// endpoint cannot be woken, the sweep finds it.
func (h *Hooks) store1(ctx context.Context, id string, list ...hook.Event) error {
	endpoints, err := h.events.Handle(ctx, id, list)
	if err != nil {
		return err
	}
	h.wake(ctx, endpoints)
	return nil
}

func (h *Hooks) wake(ctx context.Context, endpoints []int64) {
	tasks := make([]task.Task, len(endpoints))
	for i, id := range endpoints {
		tasks[i] = task.SendHook(id, app.Clock())
	}
	if err := h.queue.Enqueue(ctx, tasks...); err != nil {
		h.log.WarnContext(ctx, "webhooks wait for the sweep", "err", err)
	}
}

// sweep makes webhook events for opened drops, for what drops earned and for issued coupons, and wakes endpoints whose
// retries are due or whose task was lost. Without endpoints it only skips issued coupons.
func (h *Hooks) sweep(ctx context.Context) error {
	if h.wants.None(ctx) {
		return h.skipIssued(ctx)
	}
	if h.wants.Any(ctx, hook.DropOpened) {
		opened, err := h.events.Opened(ctx, openedAtOnce)
		h.wake(ctx, opened)
		if err != nil {
			return err
		}
	}
	if h.wants.Any(ctx, hook.DropEarned) {
		earned, err := h.events.Earned(ctx, openedAtOnce)
		h.wake(ctx, earned)
		if err != nil {
			return err
		}
	}
	if err := h.sweepIssued(ctx); err != nil {
		return err
	}
	due, err := h.store.DueEndpoints(ctx, HookEndpoints)
	if err != nil {
		return err
	}
	h.wake(ctx, due)
	return nil
}

func (h *Hooks) sweepIssued(ctx context.Context) error {
	if !h.wants.Any(ctx, hook.CouponIssued) {
		return h.skipIssued(ctx)
	}
	until := time.Now().Add(time.Second)
	for more := true; more && time.Now().Before(until) && ctx.Err() == nil; {
		var endpoints []int64
		var err error
		if endpoints, more, err = h.events.Issued(ctx, issuedAtOnce); err != nil {
			return err
		}
		h.wake(ctx, endpoints)
	}
	return nil
}

// skipIssued moves past issued coupons, every [skipEvery], while no endpoint subscribes to them.
// Once an endpoint subscribes, the sweep reads the coupons of the last seconds, and sends no
// coupon that is older than the endpoint.
func (h *Hooks) skipIssued(ctx context.Context) error {
	if time.Since(h.skipped) < skipEvery {
		return nil
	}
	if err := h.events.SkipIssued(ctx); err != nil {
		return err
	}
	h.skipped = time.Now()
	return nil
}

// send sends the due events of an endpoint, for one turn.
func (h *Hooks) send(ctx context.Context, t task.HookPayload) error {
	more, err := h.sending.Drain(ctx, t.EndpointID)
	if more && ctx.Err() == nil { // or the sweep of another worker continues
		h.wake(ctx, []int64{t.EndpointID})
	}
	return err
}
