package sms

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"dropbell/adapters/sender"
	"dropbell/domain/delivery"
)

// EachAtOnce is how many messages of one Send are under way at once at providers that
// take one message in a call.
const EachAtOnce = 20

// An Account is the part of a [Sender] that belongs to one provider: it signs the call
// for a message and reads the answer. Implementations are safe for concurrent use.
type Account interface {
	// Name is the provider's name in details. Answered is the beginning of the detail of a
	// refusal, such as "Twilio answered ".
	Name() string
	Answered() string
	// Request returns the signed call that sends the message to a number in E.164. If the error
	// is a [Refusal], it is the message's result.
	Request(ctx context.Context, to string, m delivery.Message) (*http.Request, error)
	// Read reads an answer whose status stands for the usual result.
	Read(a sender.Answer, usual delivery.Result) Said
	// Secrets are the keys that a detail may not hold.
	Secrets() []string
}

// Said is the content of an answer's body.
type Said struct {
	Accepted bool
	// Code and Words are the provider's refusal. An empty Code means that the body is not in the
	// provider's format.
	Code, Words string
	// Result is the meaning of the refusal. Its Detail is built from Code and Words.
	Result delivery.Result
}

// A Refusal is the result of a message for which no call is made.
type Refusal delivery.Result

func (r *Refusal) Error() string { return r.Detail }

// A Sender sends every message by a call of its own to an [Account]. It is safe for
// concurrent use.
type Sender struct {
	*Client
	account Account
}

// NewSender returns the sender of the account.
func NewSender(a Account, o sender.Options) *Sender { return &Sender{NewClient(EachAtOnce, o), a} }

// Send sends every message in a call of its own; see [sender.Each].
func (s *Sender) Send(ctx context.Context, messages []delivery.Message) []delivery.Result {
	return sender.Each(ctx, messages, EachAtOnce, s.one)
}

func (s *Sender) one(ctx context.Context, m delivery.Message) delivery.Result {
	if err := ctx.Err(); err != nil {
		return Ended(err)
	}
	to, err := Number(m.To.Phone)
	if err != nil {
		return delivery.Result{Status: delivery.Permanent, Detail: err.Error()}
	}
	r, err := s.account.Request(ctx, to, m)
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		return delivery.Result(*refusal)
	}
	if err != nil {
		return delivery.Result{Unsent: true, Detail: "the address of " + s.account.Name() + " is not usable"}
	}
	answer, usual, failed := s.Call(r)
	if failed != nil {
		return *failed
	}
	usual.Whole = false // the call has one message
	said := s.account.Read(answer, usual)
	switch {
	case said.Accepted && usual.Status == delivery.Delivered:
		return usual
	case said.Code != "":
		said.Result.Detail = Detail(s.account.Answered(), said.Code, said.Words, s.account.Secrets()...)
		return said.Result
	case usual.Status == delivery.Delivered:
		return NotAgreed()
	}
	return usual
}

// Detail returns the detail of a provider's refusal, without the secrets. answered is the
// beginning of the detail; see [Account].
func Detail(answered, code, words string, secrets ...string) string {
	return delivery.DetailOf(Without(answered+code+": "+words, secrets...))
}

// Without returns a provider's words without the secrets.
func Without(words string, secrets ...string) string {
	for _, s := range secrets {
		if s != "" {
			words = strings.ReplaceAll(words, s, "…")
		}
	}
	return words
}
