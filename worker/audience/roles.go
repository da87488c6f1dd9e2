// Package audience is the room of worker for users: codes that prove their phone numbers.
package audience

import (
	"context"

	"dropbell/app"
	"dropbell/domain/event"
	"dropbell/domain/task"
	"dropbell/domain/user/verification"
	"dropbell/worker/shell"
)

// CodesAtOnce is how many codes one worker sends at a time.
const CodesAtOnce = 8

// Deps are the dependencies of the room.
type Deps struct {
	Codes *verification.Sender
	// SMS says whether this process delivers SMS and the codes for phone numbers.
	SMS   bool
	Queue shell.Queue
}

// Roles returns what worker does for users.
func Roles(d Deps) shell.Roles {
	r := shell.Roles{
		Handlers: []shell.Handler{shell.On("phone-codes", event.CodeRequested, app.Decoded(func(ctx context.Context, _ string, e event.PhoneCode) error {
			return d.Queue.Enqueue(ctx, task.SendPhoneCode(e.VerificationID))
		}))},
		Tasks: []shell.Task{{Name: task.SendCode, Do: shell.Decoded(func(ctx context.Context, t task.CodePayload) error {
			return d.Codes.Run(ctx, t.VerificationID)
		})}},
	}
	if d.SMS {
		r.Sweeps = []shell.Sweep{{Role: shell.Delivery, Name: "phone codes", Do: d.Codes.Sweep}}
	}
	return r
}
