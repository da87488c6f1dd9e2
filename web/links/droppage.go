package links

import (
	"context"
	"net/http"

	"github.com/go-chi/chi/v5"

	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/message"
	"dropbell/domain/reminder"
	"dropbell/domain/template"
	"dropbell/domain/user"
	droppages "dropbell/views/pages/drops"
	"dropbell/views/ui"
	"dropbell/web/middleware"
)

// Brands returns the texts and the brand of a shop; see [message.Source].
type Brands interface {
	Book(ctx context.Context, p message.Place, upTo int64) (*message.Book, error)
}

// A Claim claims a coupon of the drop for the user whose link it is. A repetition with the same key
// changes nothing.
type Claim func(ctx context.Context, by user.ID, templateID int64, key string) error

// claimsInFlight bounds the claims that pages of drops make at a time in this process.
const claimsInFlight = 256

// page shows the page of a drop without a claim address of the shop: what the coupon is worth, when
// it opens and how it is claimed.
func (t *DropLinks) page(v *visit, r reminder.Reader, d template.Template, status int, claimed droppages.Claimed) {
	book, err := t.brands.Book(v.r.Context(), message.Place{Shop: d.ShopNumber, Template: d.ID}, message.Newest)
	if err != nil {
		book = nil // the page works without the brand
	}
	v.frame.Zone = d.Zone()
	brand := book.Settings()
	v.w.Header().Set("Content-Security-Policy", ui.BrandedPolicy(v.frame.Nonce))
	p := droppages.Public{Drop: d, Brand: brand, State: d.State(v.Now()), Claimed: claimed, MayClaim: r.UserID != 0 && t.claim != nil && d.Obtain == template.ByClaim,
		Name: book.Name(v.frame.Locale.Tag, d.Name), Description: book.Description(v.frame.Locale.Tag, d.Description)}
	if err := v.draw(status, p.Page()); err != nil {
		v.fail(err)
	}
}

// claimed answers the button of the page.
func (t *DropLinks) claimed(w http.ResponseWriter, r *http.Request) {
	v := t.pages.visit(w, r, DropPrefix)
	token := chi.URLParam(r, "token")
	reader, err := t.links.Parse(token)
	limiter, key := v.users, middleware.LimitKey{Kind: 'd', Low: uint64(reader.UserID)}
	if err != nil || reader.UserID == 0 {
		q, r := middleware.Ensure(v.r)
		err, limiter, key = user.ErrLink, v.failed, middleware.AddressKey('l', q.ClientIP(r))
	}
	if limited := v.limit(limiter, key); limited != nil {
		err = limited
	}
	var d template.Template
	if err == nil {
		d, err = t.drop(v.r.Context(), reader.TemplateID)
	}
	if err == nil && (t.claim == nil || d.Obtain != template.ByClaim || addressOf(d) != "") {
		err = user.ErrLink // the page has no button
	}
	if err != nil {
		v.fail(err)
		return
	}
	err = t.claim(v.r.Context(), reader.UserID, d.ID, "link")
	switch kind := fault.KindOf(err); {
	case err == nil:
		t.page(v, reader, d, http.StatusOK, droppages.Claimed{Done: true})
	case kind == fault.Conflict || kind == fault.Denied || kind == fault.Throttled || kind == fault.Unavailable || kind == fault.NotFound:
		status := map[fault.Kind]int{fault.Conflict: 409, fault.Denied: 403, fault.Throttled: 429, fault.Unavailable: 503, fault.NotFound: 404}[kind]
		t.page(v, reader, d, status, droppages.Claimed{Refused: ui.FaultText(v.r.Context(), err)})
	default:
		v.fail(err)
	}
}

// addressOf returns the claim address of the drop; "" = there is none to which readers may be led.
func addressOf(d template.Template) string {
	return (delivery.Subject{ClaimURL: d.ClaimAddress()}).Link()
}

// drop returns a drop that is no draft, or [user.ErrLink].
func (t *DropLinks) drop(ctx context.Context, id int64) (template.Template, error) {
	d, err := t.drops.Template(ctx, id)
	if fault.KindOf(err) == fault.NotFound || err == nil && d.Stored == template.Draft {
		return d, user.ErrLink
	}
	return d, err
}
