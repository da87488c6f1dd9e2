package program

import (
	"context"

	deliverydb "dropbell/adapters/postgres/delivery"
	"dropbell/app"
	"dropbell/domain/delivery"
	"dropbell/domain/event"
	"dropbell/domain/feedback"
	"dropbell/domain/task"
	"dropbell/domain/verification"
)

// codesHere is how many codes one worker sends at a time.
const codesHere = 8

// wirePhones makes the service that sends codes for phone numbers, through the sender
// of all text messages and under the same limits, and the one that stores receipts that
// came before their messages were known.
func (p *program) wirePhones(sms delivery.Sender, limits delivery.Admission) {
	p.codes = &verification.Sender{Store: p.Stores.Verifications, Keys: verification.NewKeys(p.Config.LinkSecret), SMS: sms, Admission: limits}
	reports := deliverydb.NewFeedback(p.DB, nil)
	p.OnClose(func() error { reports.Close(); return nil })
	p.matcher = &feedback.Matcher{Store: p.Stores.Serials, Refs: feedback.NewRefs(p.Config.LinkSecret), Reports: reports}
}

// listenPhones queues the codes that users request.
func (p *program) listenPhones() {
	p.bus.Handle("phone-codes", event.CodeRequested, app.Decoded(func(ctx context.Context, _ string, e event.PhoneCode) error {
		return p.queue.Enqueue(ctx, task.SendPhoneCode(e.VerificationID))
	}))
}

// codeTask sends one code.
func (p *program) codeTask(ctx context.Context, t task.CodePayload) error {
	return p.codes.Run(ctx, t.VerificationID)
}
