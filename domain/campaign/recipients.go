package campaign

import (
	"context"
	"slices"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/delivery/feedback"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

// An Outcome is the outcome of one recipient.
type Outcome struct {
	UserID   user.ID
	Outcome  delivery.Outcome
	Reason   string
	Detail   string // the provider's last answer
	Attempts int
	BatchID  int64
	// At is when the outcome was recorded. It is zero for a message that was sent at the first
	// attempt, because no time is stored then: the time lies between NotBefore and NotAfter, and
	// nil means unknown.
	At                  time.Time
	NotBefore, NotAfter *time.Time
	NextRetryAt         *time.Time
	Channel             delivery.Channel
	// Variant is the content the recipient gets, or [delivery.HeldOut].
	Variant int
	// OpenedAt is when the recipient first followed the message's link.
	OpenedAt *time.Time
	// Reported is the status that the provider reported for a sent message later; empty = no
	// report. Cause is the reason in that report.
	Reported feedback.Status
	Cause    string
}

// A RecipientQuery selects recipients of a campaign by ascending id; zero fields select all
// recipients.
type RecipientQuery struct {
	// Outcome also selects the outcomes that are counted with it; see [delivery.ListedOutcomes].
	Outcome delivery.Outcome
	Reason  string
	// Awake excludes the recipients whose message sleeps, see [delivery.Outcome.Sleeping].
	Awake   bool
	Variant *int
	Only    user.ID // 0 = all users
	After   user.ID // keyset
	Limit   int
}

// A RecipientPage is one page of recipients. A search reads a bounded number of batches at a
// time. If few recipients match, More may be set although the page is not full, or is even empty.
type RecipientPage struct {
	List []Outcome
	More bool
	// Next is where the next page begins, if there is More.
	Next user.ID
}

// Waiting reports whether the recipient waits for the end of the user's quiet hours, or for the decision of a test.
func (o Outcome) Waiting() bool {
	return o.Outcome.Sleeping(o.Reason)
}

// Waiting counts the campaign's recipients whose message sleeps. They are in flight.
type Waiting struct {
	// Users are in quiet hours.
	Users int64
	// Next is the earliest end of a waiting recipient's quiet hours; zero if no recipient waits.
	Next time.Time
	// Undecided are not in the campaign's test, and wait for the version that wins.
	Undecided int64
}

// Reasons returns the reasons that recipients of campaigns can have for not being sent to at once
// or at all.
func Reasons() []string {
	return []string{delivery.ReasonHoldOut, delivery.ReasonTest, delivery.ReasonOptedOut, delivery.ReasonNoContact, delivery.ReasonSuppressed, delivery.ReasonUnverified, delivery.ReasonFrequencyCap, delivery.ReasonQuietHours,
		delivery.ReasonUserDeleted, delivery.ReasonNoLonger, delivery.ReasonSoldOut, delivery.ReasonLimit, delivery.ReasonHousehold, delivery.ReasonNoGrant, delivery.ReasonCampaignBudget, delivery.ReasonCampaignCancel,
		delivery.ReasonCampaignEnded, delivery.ReasonDeadline, delivery.ReasonNoSender, delivery.ReasonProvider, delivery.ReasonThrottled,
		delivery.ReasonTooManyTries, delivery.ReasonRefused, delivery.ReasonCrashed, delivery.ReasonOperator,
		delivery.ReasonCountry, delivery.ReasonNoTemplate, delivery.ReasonBudget, delivery.ReasonNoConsent, delivery.ReasonNoApp,
		delivery.ReasonDomain, delivery.ReasonWarmUp}
}

// ResultStore reads the results of campaigns.
type ResultStore interface {
	// Results returns the results of the campaigns with the ids; ids without a campaign are left
	// out.
	Results(ctx context.Context, ids []int64) (map[int64]Results, error)
	// Series returns what the campaign brought about over time, as of its last count.
	Series(ctx context.Context, id int64) (Series, error)
	// Decisions returns the looks at the campaign's test, the first first.
	Decisions(ctx context.Context, id int64) ([]TestDecision, error)
	// Recipients reads about as much as it returns, however large the campaign.
	Recipients(ctx context.Context, c Campaign, q RecipientQuery) (RecipientPage, error)
	// Waiting counts recipients in quiet hours. It reads their rows.
	Waiting(ctx context.Context, id int64) (Waiting, error)
}

// Results returns the results of the campaign, or [ErrNotFound].
func (s *Service) Results(ctx context.Context, by staff.Actor, id int64) (Campaign, Results, error) {
	c, err := s.view(ctx, by, id)
	if err != nil {
		return c, Results{}, err
	}
	all, err := s.Store.Results(ctx, []int64{id})
	return c, all[id], err
}

// Waiting returns how many recipients of the campaign wait for the end of their quiet hours. It
// is zero unless the campaign is running.
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
	return s.RecipientsOf(ctx, c, q)
}

// RecipientsOf is [Service.Recipients] of a campaign that the actor was shown.
func (s *Service) RecipientsOf(ctx context.Context, c Campaign, q RecipientQuery) (RecipientPage, error) {
	return s.Store.Recipients(ctx, c, q)
}

// EachRecipient calls yield for every recipient that q selects, by ascending id, until yield
// returns an error. The limit of q is how many recipients are read at a time.
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

// A Past is a campaign with its progress and its results.
type Past struct {
	Status
	Results Results
}

// MaxCompared is the most campaigns with which a campaign is compared.
const MaxCompared = 5

// Compared returns the campaigns with the ids that c can be compared with, in the order of the
// ids: started campaigns of the same shop that the actor may see. leftOut counts the other ids
// and the ids after the first [MaxCompared].
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

// Earlier returns finished, cancelled and failed campaigns of c's shop that had started and are
// older than c, newest first.
func (s *Service) Earlier(ctx context.Context, by staff.Actor, c Campaign, beforeID int64, limit int) ([]Past, error) {
	if beforeID == 0 || beforeID > c.ID {
		beforeID = c.ID
	}
	found, err := s.Campaigns(ctx, by, Query{Shops: []int64{c.Shop}, States: []State{Finished, Cancelled, Failed}, Started: true, BeforeID: beforeID, Limit: limit})
	if err != nil {
		return nil, err
	}
	return s.WithResults(ctx, found)
}

// WithResults returns the campaigns, which the actor was shown, with the results of their last count.
func (s *Service) WithResults(ctx context.Context, found []Status) ([]Past, error) {
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
