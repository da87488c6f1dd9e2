package program

import (
	"context"

	"dropbell/app"
	"dropbell/domain/event"
	"dropbell/domain/task"
)

// codesHere is how many codes one worker sends at a time.
const codesHere = 8

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
