package campaign

import (
	"context"
	"slices"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/feedback"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// An Outcome is what became of one recipient.
type Outcome struct {
	UserID   user.ID
	Outcome  delivery.Outcome
	Reason   string
	Detail   string // the provider's last answer
	Attempts int
	BatchID  int64
	// At is when the outcome was recorded. For a message that was sent at the
	// first attempt no time is stored: At is zero, and the time lies between
	// NotBefore and NotAfter, where nil means unknown.
	At                  time.Time
	NotBefore, NotAfter *time.Time
	NextRetryAt         *time.Time
	Channel             delivery.Channel
	// Variant is the content the recipient gets, or [delivery.HeldOut].
	Variant int
	// OpenedAt is when the recipient first followed the message's link.
	OpenedAt *time.Time
	// Reported is what the provider reported of a sent message later, and Cause its
	// words; empty = nothing.
	Reported feedback.Status
	Cause    string
}

// A RecipientQuery selects recipients of a campaign by ascending id; zero
// fields select all.
type RecipientQuery struct {
	// Outcome also selects what is counted with it; see [delivery.ListedOutcomes].
	Outcome delivery.Outcome
	Reason  string
	// Without excludes the recipients with this reason; "" = none.
	Without string
	Variant *int
	Only    user.ID // 0 = all users
	After   user.ID // keyset
	Limit   int
}

// A RecipientPage is one page of recipients. A search for what is rare looks
// at a bounded number of batches at a time: More may be set although the page
// is not full, even empty.
type RecipientPage struct {
	List []Outcome
	More bool
	// Next is where the next page begins, if there is More.
	Next user.ID
}

// Waiting reports whether the recipient is to be sent to once the user's quiet
// hours end.
func (o Outcome) Waiting() bool {
	return o.Outcome.Sleeping(o.Reason)
}

// Waiting are the campaign's recipients in quiet hours. They are in flight.
type Waiting struct {
	Users int64
	// Next is when the first recipient's quiet hours end; zero if no recipient
	// waits.
	Next time.Time
}

// Reasons returns the reasons for not simply being sent that recipients of
// campaigns have.
func Reasons() []string {
	return []string{delivery.ReasonHoldOut, delivery.ReasonOptedOut, delivery.ReasonNoContact, delivery.ReasonSuppressed, delivery.ReasonUnverified, delivery.ReasonFrequencyCap, delivery.ReasonQuietHours,
		delivery.ReasonUserDeleted, delivery.ReasonSoldOut, delivery.ReasonLimit, delivery.ReasonNoGrant, delivery.ReasonCampaignCancel,
		delivery.ReasonCampaignEnded, delivery.ReasonDeadline, delivery.ReasonNoSender, delivery.ReasonProvider, delivery.ReasonThrottled,
		delivery.ReasonTooManyTries, delivery.ReasonRefused, delivery.ReasonCrashed, delivery.ReasonOperator,
		delivery.ReasonCountry, delivery.ReasonNoTemplate, delivery.ReasonBudget, delivery.ReasonNoConsent, delivery.ReasonNoApp,
		delivery.ReasonDomain, delivery.ReasonWarmUp}
}

// ResultStore reads what became of campaigns.
type ResultStore interface {
	// Results returns the results of those of the campaigns that exist.
	Results(ctx context.Context, ids []int64) (map[int64]Results, error)
	// Recipients reads about as much as it returns, however large the campaign.
	Recipients(ctx context.Context, c Campaign, q RecipientQuery) (RecipientPage, error)
	// Waiting counts recipients in quiet hours. It reads their rows.
	Waiting(ctx context.Context, id int64) (Waiting, error)
}

// Results returns what the campaign led to, or [ErrNotFound].
func (s *Service) Results(ctx context.Context, by staff.Actor, id int64) (Campaign, Results, error) {
	c, err := s.view(ctx, by, id)
	if err != nil {
		return c, Results{}, err
	}
	all, err := s.Store.Results(ctx, []int64{id})
	return c, all[id], err
}

// Waiting returns how many recipients of the campaign wait for the end of their
// quiet hours. There are none unless the campaign is running.
func (s *Service) Waiting(ctx context.Context, st Status) (Waiting, error) {
	if st.State != Running && st.State != Paused || st.Progress.InFlight == 0 {
		return Waiting{}, nil
	}
	return s.QuietCounts(ctx, st.ID)
}

func (s *Service) view(ctx context.Context, by staff.Actor, id int64) (Campaign, error) {
	c, err := s.Store.Campaign(ctx, id)
	if err == nil {
		err = by.May(staff.View, c.Shop)
	}
	return c, err
}

// Recipients lists recipients of the campaign by ascending id, or returns
// [ErrNotFound].
func (s *Service) Recipients(ctx context.Context, by staff.Actor, id int64, q RecipientQuery) (RecipientPage, error) {
	c, err := s.view(ctx, by, id)
	if err != nil {
		return RecipientPage{}, err
	}
	return s.Store.Recipients(ctx, c, q)
}

// EachRecipient yields every recipient that q selects, by ascending id, until
// yield returns an error; q's limit is how many are read at a time.
func (s *Service) EachRecipient(ctx context.Context, by staff.Actor, id int64, q RecipientQuery, yield func(Outcome) error) error {
	c, err := s.view(ctx, by, id)
	if err != nil {
		return err
	}
	for {
		page, err := s.Store.Recipients(ctx, c, q)
		if err != nil {
			return err
		}
		for _, o := range page.List {
			if err := yield(o); err != nil {
				return err
			}
		}
		if !page.More {
			return nil
		}
		q.After = page.Next
	}
}

// A Past is a campaign with how far it came and what it led to.
type Past struct {
	Status
	Results Results
}

// MaxCompared is how many others a campaign is set beside at most.
const MaxCompared = 5

// Compared returns the campaigns with those ids that c may be set beside, in
// the order of the ids: of the same shop, started, seen by the actor. Left out
// is how many of the ids name none such, or are too many.
func (s *Service) Compared(ctx context.Context, by staff.Actor, c Campaign, ids []int64) (list []Past, leftOut int, err error) {
	asked := unique(ids)
	for _, id := range asked[:min(len(asked), MaxCompared)] {
		st, err := s.Campaign(ctx, by, id)
		switch fault.KindOf(err) {
		case fault.NotFound, fault.Denied:
			continue
		}
		if err != nil {
			return nil, 0, err
		}
		if st.ID != c.ID && st.Shop == c.Shop && st.StartedAt != nil {
			list = append(list, Past{Status: st})
		}
	}
	return list, len(asked) - len(list), s.addResults(ctx, list)
}

// Earlier returns campaigns of c's shop that began before it and are over, the
// newest first.
func (s *Service) Earlier(ctx context.Context, by staff.Actor, c Campaign, beforeID int64, limit int) ([]Past, error) {
	if beforeID == 0 || beforeID > c.ID {
		beforeID = c.ID
	}
	found, err := s.Campaigns(ctx, by, Query{Shops: []int64{c.Shop}, States: []State{Finished, Cancelled, Failed}, Started: true, BeforeID: beforeID, Limit: limit})
	if err != nil {
		return nil, err
	}
	list := make([]Past, len(found))
	for i, st := range found {
		list[i].Status = st
	}
	return list, s.addResults(ctx, list)
}

func (s *Service) addResults(ctx context.Context, list []Past) error {
	ids := make([]int64, len(list))
	for i, p := range list {
		ids[i] = p.ID
	}
	if len(ids) == 0 {
		return nil
	}
	all, err := s.Store.Results(ctx, ids)
	for i, p := range list {
		list[i].Results = all[p.ID]
	}
	return err
}

// unique returns the ids in their order, each once.
func unique(ids []int64) (list []int64) {
	for _, id := range ids {
		if !slices.Contains(list, id) {
			list = append(list, id)
		}
	}
	return list
}
