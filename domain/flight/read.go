package flight

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"dropbell/domain/budget"
	"dropbell/domain/delivery"
	"dropbell/domain/door"
	"dropbell/domain/forecast"
	"dropbell/domain/message"
	"dropbell/domain/template"
)

const (
	// near is the distance within which the openings of other drops load the same processes and providers.
	near = 10 * time.Minute
	// mostLinks bounds the links that one check calls; callFor is how long it waits for them.
	mostLinks = 10
	callFor   = 4 * time.Second
)

// facts are what a check has read.
type facts struct {
	t        template.Template
	now      time.Time
	channels delivery.ChannelSet
	// forecasts are those of the channels until the drop opens, for all drops.
	forecasts []forecast.ChannelForecast
	texts     []textFact
	// follows are the addresses that messages about the drop lead to; links those that were called.
	follows []string
	called  bool
	links   []Link
	// doors is the refusal of the doors' test persons; nil = there is none.
	doors   error
	budgets []budget.Budget
	// others open near the drop; reserved are the customers who reserved reminders of them.
	others, reserved int64
	// web processes run; wanted are those for the opening.
	web, wanted int
}

// textFact is a text that readers of a language get.
type textFact struct {
	message.Key
	broken, empty bool
	missing       []string
}

func (s *Service) readChannels(ctx context.Context, f *facts) (err error) {
	if horizon := f.t.OpensAt.Sub(f.now); horizon > 0 && f.t.Stored != template.Draft {
		f.forecasts, err = s.Forecaster.Forecast(ctx, horizon)
	}
	return err
}

// readTexts renders every text of a reminder and of what may follow it, over every channel with a sender and in every
// language.
func (s *Service) readTexts(ctx context.Context, f *facts) error {
	book, err := s.Texts.Book(ctx, message.Place{Shop: f.t.ShopNumber, Template: f.t.ID}, message.Newest)
	if err != nil {
		return err
	}
	if address := f.t.ClaimAddress(); message.Followed(address) {
		f.follows = append(f.follows, address)
	}
	kinds := []message.Kind{message.Reminder, message.Correction, message.Cancelled, message.Notice}
	if f.t.Waits() {
		kinds = append(kinds, message.Waitlist, message.Offer)
	}
	if f.t.OpeningMode.Drawn() {
		kinds = append(kinds, message.Won, message.Lost)
	}
	for _, k := range kinds {
		about := message.Facts{Kind: k, Drop: f.t.Name, Description: f.t.Description, Shop: f.t.ShopName, Worth: f.t.Worth(), OpensAt: f.t.OpensAt, Link: f.t.ClaimAddress(),
			Minutes: message.SampleMinutes, Days: message.SampleDays, Hours: message.SampleHours}
		for _, c := range delivery.AllChannels() {
			if !f.channels.Has(c) {
				continue
			}
			channel := message.Channel(c.String())
			for _, tag := range book.Languages(k, channel) {
				found, ok := book.Own(message.Key{Kind: k, Channel: channel, Language: tag})
				if !ok {
					continue
				}
				said := book.Render(about, channel, message.Reader{Locale: tag, Zone: f.t.Zone()})
				fact := textFact{Key: found.Key, broken: found.Text.Check(found.Key) != nil, empty: said.Text == "" && said.HTML == ""}
				if found.Level != message.BuiltIn {
					fact.missing = found.Text.Missing(found.Key)
					f.follows = append(f.follows, found.Text.Addresses(k)...)
				}
				f.texts = append(f.texts, fact)
			}
		}
	}
	slices.Sort(f.follows)
	f.follows = slices.Compact(f.follows)
	return nil
}

func (s *Service) readDoors(ctx context.Context, f *facts) error {
	if f.t.Stored != template.Draft && f.t.Stored != template.Published && f.t.Stored != template.Paused {
		return nil
	}
	err := s.Doors.Ready(ctx, f.t)
	if errors.Is(err, door.ErrTests) {
		f.doors, err = err, nil
	}
	return err
}

func (s *Service) readBudgets(ctx context.Context, f *facts) error {
	for _, k := range []budget.Key{{Scope: budget.Drop, Subject: f.t.ID, Currency: f.t.Currency}, {Scope: budget.Shop, Subject: f.t.ShopNumber, Currency: f.t.Currency}} {
		b, err := s.Budgets.Budget(ctx, k)
		if errors.Is(err, budget.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		f.budgets = append(f.budgets, b)
	}
	return nil
}

func (s *Service) readAround(ctx context.Context, f *facts) (err error) {
	if f.others, f.reserved, err = s.Store.Around(ctx, f.t, near); err != nil {
		return err
	}
	drops, err := s.Capacities.DropsAhead(ctx, f.t.OpensAt.Add(-time.Minute), f.t.OpensAt.Add(time.Minute))
	if err != nil {
		return err
	}
	f.wanted = forecast.CapacityFor(forecast.Ahead{Drops: drops}, forecast.Process{WebCores: 1, WorkerCores: 1, PerReservation: 1}, f.t.OpensAt.Add(-time.Minute)).Web
	f.web, err = s.Processes(ctx)
	return err
}

// callLinks calls the links side by side. An address without an answer in time has status 0.
func (s *Service) callLinks(ctx context.Context, f *facts) error {
	ctx, cancel := context.WithTimeout(ctx, callFor)
	defer cancel()
	f.called = true
	f.links = make([]Link, min(len(f.follows), mostLinks))
	var all sync.WaitGroup
	for i := range f.links {
		all.Go(func() { f.links[i] = Link{f.follows[i], s.Links.Call(ctx, f.follows[i])} })
	}
	all.Wait()
	return nil
}
