package links

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/go-chi/chi/v5"

	"dropbell/domain/draw"
	"dropbell/domain/message"
	"dropbell/domain/user"
	droppages "dropbell/views/pages/drops"
	"dropbell/views/ui"
	"dropbell/web/middleware"
)

// DrawPrefix is where the pages of draws live. They are public and need no link.
const DrawPrefix = "/draw"

// PublicDraws reads what is published about draws; see [draw.Service].
type PublicDraws interface {
	Draw(ctx context.Context, templateID int64) (draw.Draw, error)
	// Find returns a ticket's row in the sealed list.
	Find(ctx context.Context, templateID int64, t draw.Ticket) (row draw.Row, found bool, err error)
}

// DrawPages shows draws to everybody: what is drawn, what was drawn, and how to check it.
type DrawPages struct {
	pages  *Pages
	drops  Drops
	draws  PublicDraws
	brands Brands
	server string
}

// NewDrawPages returns the pages under [DrawPrefix]. server is the public address of this server.
func NewDrawPages(p *Pages, drops Drops, draws PublicDraws, brands Brands, server string) http.Handler {
	t := &DrawPages{p, drops, draws, brands, server}
	mux := chi.NewMux()
	mux.Get("/{id}", t.show)
	mux.Head("/{id}", t.show)
	missing := func(w http.ResponseWriter, r *http.Request) { p.visit(w, r, DrawPrefix).fail(user.ErrLink) }
	mux.NotFound(missing)
	mux.MethodNotAllowed(missing)
	return mux
}

func (t *DrawPages) show(w http.ResponseWriter, r *http.Request) {
	v := t.pages.visit(w, r, DrawPrefix)
	if err := t.page(v); err != nil {
		v.fail(err)
	}
}

func (t *DrawPages) page(v *visit) error {
	q, r := middleware.Ensure(v.r)
	if limited := v.limit(v.failed, middleware.AddressKey('w', q.ClientIP(r))); limited != nil {
		return limited
	}
	ctx := v.r.Context()
	id, err := strconv.ParseInt(chi.URLParam(v.r, "id"), 10, 64)
	if err != nil {
		return user.ErrLink
	}
	p := droppages.PublicDraw{Ticket: v.r.URL.Query().Get("ticket"), Base: "/api/v1/draws/" + strconv.FormatInt(id, 10), Server: t.server}
	if p.Draw, err = t.draws.Draw(ctx, id); errors.Is(err, draw.ErrNoDraw) {
		return user.ErrLink
	} else if err != nil {
		return err
	}
	if p.Drop, err = t.drops.Template(ctx, id); err != nil {
		return err
	}
	if err := t.read(ctx, &p); err != nil {
		return err
	}
	book, err := t.brands.Book(ctx, message.Place{Shop: p.Drop.ShopNumber, Template: id}, message.Newest)
	if err != nil {
		book = nil // the page works without the brand
	}
	p.Brand, p.Name = book.Settings(), book.Name(v.frame.Locale.Tag, p.Drop.Name)
	v.frame.Zone = p.Drop.Zone()
	v.w.Header().Set("Content-Security-Policy", ui.BrandedPolicy(v.frame.Nonce))
	return v.draw(http.StatusOK, p.Page())
}

// read opens the signed texts of the draw, and looks for the ticket that was typed.
func (t *DrawPages) read(ctx context.Context, p *droppages.PublicDraw) (err error) {
	if p.Card, err = p.Draw.Card(); err != nil {
		return err
	}
	if p.Draw.Seal != "" {
		s, err := p.Draw.Sealing()
		if err != nil {
			return err
		}
		p.Seal = &s
	}
	if p.Draw.Result == "" || p.Draw.State == draw.Sealed {
		return nil
	}
	r, err := p.Draw.Outcome()
	if err != nil {
		return err
	}
	p.Result = &r
	ticket, wrong := draw.ParseTicket(p.Ticket)
	if wrong != nil {
		return nil // the page says that there is no such ticket
	}
	row, found, err := t.draws.Find(ctx, p.Draw.TemplateID, ticket)
	if err != nil || !found {
		return err
	}
	p.Own = &droppages.OwnTicket{Score: draw.Score(r.Seed, ticket, row.Weight())}
	p.Own.Won = p.Own.Score.String() <= r.Cutoff.String()
	for _, s := range r.Struck {
		if s.Ticket == ticket {
			p.Own.Struck, p.Own.Won = s.Reason, false
		}
	}
	return nil
}
