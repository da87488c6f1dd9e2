package drops

import (
	"context"
	"net/http"
	"time"

	"dropbell/domain/flight"
	"dropbell/web/api/pipeline"
)

// Flight is the flight check of a drop.
type Flight struct {
	TemplateID string          `json:"template_id" example:"1"`
	Level      string          `json:"level" enum:"green,amber,red" doc:"The most serious level of the findings."`
	CheckedAt  time.Time       `json:"checked_at"`
	Findings   []FlightFinding `json:"findings" nullable:"false"`
	Waves      []FlightWave    `json:"waves" nullable:"false" doc:"One for each slot and channel with reserved reminders."`
}

// FlightFinding is one finding.
type FlightFinding struct {
	Point string `json:"point" enum:"users,providers,texts,doors,links,budget,neighbours,capacity"`
	Level string `json:"level" enum:"green,amber,red" doc:"red endangers the evening: publishing then needs a reason."`
	Found string `json:"found" example:"messages by e-mail: 4000, the longest wave takes 17 s at 240 a second"`
	Do    string `json:"do,omitempty" doc:"What to do about it; absent if the level is green." example:"raise the provider's quota"`
}

// FlightWave is the reminders of one slot on one channel.
type FlightWave struct {
	Minutes   int       `json:"minutes" example:"10"`
	Channel   string    `json:"channel" example:"email"`
	DueAt     time.Time `json:"due_at"`
	Booked    int64     `json:"booked" example:"4000"`
	Messages  int64     `json:"messages" doc:"Reminders that will be sent, as estimated from a sample." example:"3500"`
	HeldOut   int64     `json:"held_out" doc:"Of users who are held out." example:"400"`
	NoContact int64     `json:"no_contact" doc:"Of users without a contact, or who have opted out." example:"100"`
	Missed    int64     `json:"missed" doc:"Messages that would not be sent before the opening." example:"0"`
	FinishAt  time.Time `json:"finish_at"`
}

func (h *handlers) flightRoute() {
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodGet, "/admin/templates/{id}/flight", "template-flight", "Check a drop before its opening",
		pipeline.Route{Description: "Users for each slot and channel, providers, texts, doors, links, budgets, other drops and processes, each with a level and what to do. It only reads, and calls the links in the messages, which takes up to four seconds.",
			Codes: []string{"template_not_found"}}), pipeline.ByID(h.flight))
}

func (h *handlers) flight(ctx context.Context, id int64) (*struct{ Body Flight }, error) {
	c, err := h.Flight.Check(ctx, pipeline.ActorOf(ctx), id)
	if err != nil {
		return nil, err
	}
	return &struct{ Body Flight }{Flight{pipeline.Decimal(id), string(c.Level()), c.At.UTC(),
		pipeline.Each(c.Findings, func(f flight.Finding) FlightFinding {
			return FlightFinding{string(f.Point), string(f.Level), f.Found, f.Do}
		}),
		pipeline.Each(c.Lanes, func(l flight.Lane) FlightWave {
			return FlightWave{l.Slot.Minutes(), l.Channel.String(), l.DueAt.UTC(), l.Booked, l.Messages, l.HeldOut, l.NoContact, l.Missed, l.FinishAt.UTC()}
		})}}, nil
}
