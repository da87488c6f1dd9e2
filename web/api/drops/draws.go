package drops

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/draw"
	"dropbell/domain/user"
	"dropbell/web/api/pipeline"
)

// Draws are the use cases of entrants and of everybody who checks a draw; see [draw.Service].
type Draws interface {
	Enter(ctx context.Context, w draw.Wish) (m draw.Mine, created bool, err error)
	Accept(ctx context.Context, by user.ID, templateID int64) (draw.Mine, error)
	Mine(ctx context.Context, by user.ID, templateID int64) (draw.Mine, error)
	Leave(ctx context.Context, by user.ID, templateID int64) error
	Draw(ctx context.Context, templateID int64) (draw.Draw, error)
	List(ctx context.Context, templateID int64, chunk int) ([]byte, error)
	Inclusion(ctx context.Context, templateID int64, t draw.Ticket) (draw.Inclusion, error)
}

// EntryWish is what a user may add to an entry.
type EntryWish struct {
	Pass     string   `json:"pass,omitempty" maxLength:"64" doc:"For a protected drop: the pass from POST /passes/{template_id}."`
	Channels []string `json:"channels,omitempty" maxItems:"5" nullable:"false" doc:"Over which the user is told of the result; the app's inbox if none is named. The channels of the first request count." example:"[\"app\"]"`
}

// DrawEntry is a user's part in a draw.
type DrawEntry struct {
	TemplateID  string     `json:"template_id" example:"1"`
	State       string     `json:"state" enum:"entered,waiting,offered,won,lapsed,struck" doc:"entered: the draw is still to come. waiting: it was made, and the ticket is behind the winners. offered: it won, and the coupon is to be accepted before accept_until with POST /draws/{id}/acceptance. lapsed: it was not accepted in time. struck: staff took the entry out; reason says why." example:"entered"`
	Ticket      string     `json:"ticket" doc:"The entry's random number, 32 hexadecimal digits. It is public." example:"000102030405060708090a0b0c0d0e0f"`
	Salt        string     `json:"salt" doc:"Keeps the user of the ticket from being guessed. Only the server and the user know it." example:"101112131415161718191a1b1c1d1e1f"`
	Weight      int        `json:"weight" doc:"How many chances the ticket has." example:"1"`
	EnteredAt   time.Time  `json:"entered_at" example:"2027-01-01T11:00:00Z"`
	Receipt     string     `json:"receipt" doc:"The signed receipt. Keep it: with it a dropped entry can be proved." example:"dropbell-draw/1 receipt\ndrop 1\n…"`
	Score       string     `json:"score,omitempty" doc:"Once the draw is made: the least hash of seed and ticket. Scores up to the cutoff win." example:"00c2…"`
	Cutoff      string     `json:"cutoff,omitempty" doc:"Once the draw is made: the score of the last winner." example:"0a31…"`
	CouponID    string     `json:"coupon_id,omitempty" doc:"The coupon of a winner, a moment after the draw." example:"17"`
	AcceptUntil *time.Time `json:"accept_until,omitempty" doc:"Of an offered coupon." example:"2027-01-02T12:01:03Z"`
	Reason      string     `json:"reason,omitempty" doc:"Why the entry was struck, or why a winner got no coupon."`
}

// DrawCard is what is announced about a draw before it is made.
type DrawCard struct {
	TemplateID string   `json:"template_id" example:"1"`
	State      string   `json:"state" enum:"open,closed,sealed,drawn,offered,done,cancelled" doc:"open: until entries close. sealed: the list is fixed. drawn: the winners are known. offered: winners may accept their coupons. done: they have their coupons." example:"open"`
	Protocol   string   `json:"protocol" example:"dropbell-draw/1"`
	Key        string   `json:"key" doc:"The public key that signs." example:"dropbell+1a2b3c4d+AQ…"`
	Cards      []string `json:"cards" nullable:"false" doc:"All versions of the signed card; the last one holds."`
	Seal       string   `json:"seal,omitempty" doc:"The signed seal, a moment after entries close. Keep it: it proves that the list was not changed later."`

	OpensAt  time.Time  `json:"opens_at" doc:"The first instant of entries." example:"2027-01-01T11:00:00Z"`
	ClosesAt time.Time  `json:"closes_at" doc:"The first instant without entries." example:"2027-01-01T12:00:00Z"`
	Stock    int        `json:"stock" doc:"How many tickets win." example:"100"`
	Doors    []CardDoor `json:"doors,omitempty" nullable:"false" doc:"The groups of users who can enter, with the weights of their entries; absent = all users, with the weight 1."`
	// GroupChanges tells entrants that groups are not what they were when the card was published.
	GroupChanges int        `json:"group_changes,omitempty" doc:"How often staff changed a group of users in doors after the first card, until its members were fixed." example:"1"`
	AcceptHours  int        `json:"accept_hours,omitempty" doc:"For how many hours winners may accept their coupon before the next tickets move up; absent = winners get it at once." example:"48"`
	Source       string     `json:"source" enum:"drand,local,public,commit" doc:"Where the random value comes from. local is a beacon of this server for development; whoever runs it knows its values beforehand." example:"drand"`
	Round        int64      `json:"round,omitempty" doc:"The round of the source that decides." example:"1000"`
	RoundAt      *time.Time `json:"round_at,omitempty" doc:"When that round appears." example:"2027-01-01T12:01:00Z"`
	Entries      int64      `json:"entries" doc:"The entries that can win: of the sealed list, and before the seal without the struck entries." example:"4200"`
	// NotProved is said wherever a draw is shown.
	NotProved string `json:"not_proved" doc:"What no check of a draw can prove."`
}

// CardDoor is a group of users who can enter a draw.
type CardDoor struct {
	Name   string `json:"name" example:"Members"`
	Weight int    `json:"weight" doc:"How many chances an entry of the group has." example:"3"`
}

// DrawInclusion proves that a ticket is in the sealed list.
type DrawInclusion struct {
	Ticket     string   `json:"ticket" example:"000102030405060708090a0b0c0d0e0f"`
	Commitment string   `json:"commitment" doc:"SHA-256 of the user's number as 8 bytes, big endian, and the salt." example:"5df6…"`
	Weight     int      `json:"weight" example:"1"`
	Position   int      `json:"position" doc:"The place in the list, from 0." example:"17"`
	Path       []string `json:"path" nullable:"false" doc:"The hashes from the leaf to the sealed root, the lowest first: an audit path of RFC 6962."`
}

// DrawProof is everything but the list that a check of a draw needs.
type DrawProof struct {
	DrawCard
	Result     string         `json:"result,omitempty" doc:"The signed result, once the draw is made."`
	Randomness string         `json:"randomness,omitempty" example:"fe29…"`
	Seed       string         `json:"seed,omitempty" doc:"SHA-256 of the protocol's name, the sealed root and the random value." example:"41d0…"`
	Cutoff     string         `json:"cutoff,omitempty" doc:"The score of the last winner." example:"0a31…"`
	Won        int64          `json:"won,omitempty" doc:"How many tickets won." example:"100"`
	Struck     int64          `json:"struck,omitempty" doc:"How many entries were struck." example:"0"`
	Lapsed     int64          `json:"lapsed,omitempty" doc:"How many winners did not accept in time." example:"0"`
	Inclusion  *DrawInclusion `json:"inclusion,omitempty" doc:"With the parameter ticket."`
}

type entryAnswer struct {
	Status int
	Body   DrawEntry
}

func (h *handlers) drawRoutes() {
	users := pipeline.Traits{Hot: true, Detached: true}
	anybody := pipeline.Traits{Access: pipeline.ForAnybody}
	const entry = "/draws/{id}/entry"
	pipeline.Register(h.Pipeline, pipeline.Route{Traits: users, Method: http.MethodPut, Path: entry, ID: "enter-draw", Summary: "Enter a draw", Status: http.StatusCreated,
		Description: "One entry a user; the answer comes after it is stored durably. A repetition gets the same receipt. The draw is fair to everybody who enters in time: the instant does not matter.",
		Also:        map[int]string{http.StatusOK: "The user had entered before; this is that entry."},
		Codes:       []string{"template_not_found", "template_not_open", "not_started", "entries_closed", "user_erased", "not_eligible", "pass_required", "passes_not_configured", "channel_unavailable"}}, h.enterDraw)
	pipeline.Register(h.Pipeline, pipeline.Route{Traits: pipeline.Traits{Detached: true}, Method: http.MethodPost, Path: "/draws/{id}/acceptance", ID: "accept-draw", Summary: "Accept a coupon won in a draw", Status: http.StatusOK,
		Description: "For a draw with accept_hours. The answer comes after the acceptance is stored durably; a repetition gets the same answer. A coupon that is not accepted in time goes to the next ticket.",
		Codes:       []string{"draw_not_found", "not_entered", "not_won", "offer_lapsed", "sold_out"}}, pipeline.ByID(h.acceptDraw))
	pipeline.Register(h.Pipeline, pipeline.Route{Method: http.MethodGet, Path: entry, ID: "get-draw-entry", Summary: "Show the user's entry in a draw",
		Description: "After the draw with its score and whether it won.", Codes: []string{"draw_not_found", "not_entered"}}, pipeline.ByID(h.drawEntry))
	pipeline.Register(h.Pipeline, pipeline.Route{Traits: pipeline.Traits{Detached: true}, Method: http.MethodDelete, Path: entry, ID: "leave-draw", Summary: "Leave a draw", Status: http.StatusNoContent,
		Description: "Until entries close.", Codes: []string{"draw_not_found", "not_entered", "entries_closed"}}, pipeline.ByID(h.leaveDraw))
	pipeline.Register(h.Pipeline, pipeline.Route{Traits: anybody, Method: http.MethodGet, Path: "/draws/{id}/card", ID: "get-draw-card", Summary: "Show the card of a draw",
		Description: "Needs no credentials. The rules as they were announced, signed, in all versions; and the seal as soon as there is one.", Codes: []string{"draw_not_found"}}, pipeline.ByID(h.drawCard))
	pipeline.Register(h.Pipeline, pipeline.Route{Traits: anybody, Method: http.MethodGet, Path: "/draws/{id}/proof", ID: "get-draw-proof", Summary: "Show the proof of a draw",
		Description: "Needs no credentials. With this and the list everybody can recompute the draw: `dropbell verify-draw` does with the address of this draw, without /proof.",
		Codes:       []string{"draw_not_found", "ticket_not_found"}}, h.drawProof)
	pipeline.Register(h.Pipeline, pipeline.Route{Traits: anybody, Method: http.MethodGet, Path: "/draws/{id}/list", ID: "get-draw-list", Summary: "Get the sealed list of a draw",
		Description: "Needs no credentials. One chunk of 65,536 rows, the last one shorter; empty behind the last one and before the seal. A row has 49 bytes: the ticket, the hash of user and salt, " +
			"and the weight. The list names nobody.",
		File: "application/octet-stream", FileText: "The rows of the chunk."}, h.drawList)
}

func (h *handlers) enterDraw(ctx context.Context, in *struct {
	pipeline.Ref
	Body *EntryWish
}) (*entryAnswer, error) {
	id, err := pipeline.ParseID("path.id", in.ID)
	if err != nil {
		return nil, err
	}
	w := draw.Wish{TemplateID: id, UserID: pipeline.UserOf(ctx)}
	if in.Body != nil {
		w.Pass = in.Body.Pass
		for _, name := range in.Body.Channels {
			c, err := delivery.ParseChannel(name)
			if err != nil {
				return nil, delivery.ErrChannelUnavailable
			}
			w.Channels |= delivery.ChannelSetOf(c)
		}
	}
	m, created, err := h.Draws.Enter(ctx, w)
	if err != nil {
		return nil, err
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	return &entryAnswer{status, entryJSON(m)}, nil
}

func (h *handlers) drawEntry(ctx context.Context, id int64) (*struct{ Body DrawEntry }, error) {
	m, err := h.Draws.Mine(ctx, pipeline.UserOf(ctx), id)
	if err != nil {
		return nil, err
	}
	return &struct{ Body DrawEntry }{entryJSON(m)}, nil
}

func (h *handlers) acceptDraw(ctx context.Context, id int64) (*struct{ Body DrawEntry }, error) {
	m, err := h.Draws.Accept(ctx, pipeline.UserOf(ctx), id)
	if err != nil {
		return nil, err
	}
	return &struct{ Body DrawEntry }{entryJSON(m)}, nil
}

func (h *handlers) leaveDraw(ctx context.Context, id int64) (*struct{}, error) {
	return nil, h.Draws.Leave(ctx, pipeline.UserOf(ctx), id)
}

func entryJSON(m draw.Mine) DrawEntry {
	e := DrawEntry{TemplateID: pipeline.Decimal(m.Draw.TemplateID), State: string(m.Record.State), Ticket: m.Ticket.String(), Salt: m.Salt.String(), Weight: m.Weight,
		EnteredAt: m.EnteredAt.UTC(), Receipt: m.Receipt, Reason: m.Reason}
	if m.Result != nil {
		e.Score, e.Cutoff = m.Score.String(), m.Result.Cutoff.String()
		if m.Record.State == draw.Entered {
			e.State = "waiting"
		}
	}
	if m.Offered() {
		e.State, e.AcceptUntil = "offered", pipeline.UTC(m.OfferedUntil)
	}
	if m.CouponID != 0 {
		e.CouponID = pipeline.Decimal(m.CouponID)
	}
	return e
}

func (h *handlers) drawCard(ctx context.Context, id int64) (*struct{ Body DrawCard }, error) {
	d, err := h.Draws.Draw(ctx, id)
	if err != nil {
		return nil, err
	}
	c, err := cardJSON(d)
	return &struct{ Body DrawCard }{c}, err
}

func cardJSON(d draw.Draw) (DrawCard, error) {
	c := DrawCard{TemplateID: pipeline.Decimal(d.TemplateID), State: string(d.State), Protocol: draw.Protocol, Key: d.Key, Cards: d.Cards, Seal: d.Seal, OpensAt: d.OpensAt.UTC(),
		ClosesAt: d.ClosesAt.UTC(), Entries: d.Entries(), NotProved: draw.NotProved}
	card, err := d.Card()
	if err != nil {
		return c, err
	}
	c.Stock, c.Source, c.Round, c.AcceptHours, c.GroupChanges = card.Stock, string(card.Source.Kind), card.Round, card.AcceptHours, d.GroupChanges
	for _, door := range card.Doors {
		c.Doors = append(c.Doors, CardDoor{door.Name, door.Weight})
	}
	if d.Round != 0 {
		c.Round = d.Round
	}
	if c.Round != 0 {
		c.RoundAt = new(draw.RoundTime(c.Round))
	}
	return c, nil
}

func (h *handlers) drawProof(ctx context.Context, in *struct {
	pipeline.Ref
	Ticket string `query:"ticket" pattern:"^[0-9a-f]{32}$" doc:"Also prove that this ticket is in the sealed list." example:"000102030405060708090a0b0c0d0e0f"`
}) (*struct{ Body DrawProof }, error) {
	id, err := pipeline.ParseID("path.id", in.ID)
	if err != nil {
		return nil, err
	}
	d, err := h.Draws.Draw(ctx, id)
	if err != nil {
		return nil, err
	}
	p := DrawProof{Result: d.Result, Won: d.Won, Struck: d.Struck, Lapsed: d.Lapsed}
	if p.DrawCard, err = cardJSON(d); err != nil {
		return nil, err
	}
	if ticket, wrong := draw.ParseTicket(in.Ticket); wrong == nil {
		found, err := h.Draws.Inclusion(ctx, id, ticket)
		if err != nil {
			return nil, err
		}
		p.Inclusion = (*DrawInclusion)(&found)
	}
	if d.Result == "" {
		return &struct{ Body DrawProof }{p}, nil
	}
	r, err := d.Outcome()
	p.Randomness, p.Seed, p.Cutoff = r.Randomness.String(), r.Seed.String(), r.Cutoff.String()
	return &struct{ Body DrawProof }{p}, err
}

type chunkAnswer struct {
	Type  string `header:"Content-Type"`
	Cache string `header:"Cache-Control"`
	Body  []byte
}

// drawList answers a chunk as it was sealed. A chunk that exists never changes.
func (h *handlers) drawList(ctx context.Context, in *struct {
	pipeline.Ref
	Chunk string `query:"chunk" pattern:"^[0-9]{1,4}$" doc:"Which chunk, from 0; absent = the first." example:"0"`
}) (*chunkAnswer, error) {
	id, err := pipeline.ParseID("path.id", in.ID)
	if err != nil {
		return nil, err
	}
	n, _ := strconv.Atoi(in.Chunk) // absent = 0; the pattern allows digits alone
	rows, err := h.Draws.List(ctx, id, n)
	if err != nil {
		return nil, err
	}
	answer := &chunkAnswer{"application/octet-stream", "no-store", rows}
	if len(rows) > 0 {
		answer.Cache = "public, max-age=31536000, immutable"
	}
	return answer, nil
}
