package provider

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/seal"
	"dropbell/domain/staff"
)

// Health is how the calls of a provider went in the last minute, over all workers.
type Health struct {
	delivery.ProviderHealth
	// Share is the provider's part of the channel's messages in that minute, in
	// hundredths.
	Share int
}

// Store keeps providers.
type Store interface {
	// All lists the providers that are not deleted, by channel, shop, order and id.
	All(ctx context.Context) ([]Provider, error)
	// Provider returns [ErrNotFound] for a provider that does not exist or is deleted.
	Provider(ctx context.Context, id int64) (Provider, error)
	// NewID draws the id of a new provider, for which its secrets are sealed.
	NewID(ctx context.Context) (int64, error)
	// Create stores p under its id. It returns [ErrTooMany], or a [fault.Fields] for a shop that does not exist.
	// A creation with a request key that was used returns the provider it made.
	Create(ctx context.Context, p Provider, requestKey string, by staff.Actor) (Provider, error)
	// Save stores p if the version in the store is still p's, otherwise it returns
	// [fault.ErrStale].
	Save(ctx context.Context, p Provider, e staff.Entry) (Provider, error)
	// Delete removes the secrets of p and keeps its name for outcomes, if its version
	// is still p's, otherwise it returns [fault.ErrStale].
	Delete(ctx context.Context, p Provider, e staff.Entry) error
	// Health returns the results of the calls of the last minute by provider; the
	// id 0 is the environment's provider of the channel.
	Health(ctx context.Context, c delivery.Channel) (map[int64]Health, error)
}

// Service holds the use cases of staff. A provider receives the messages of every
// shop, so all use cases require [staff.Operate] for all shops.
type Service struct {
	Store Store
	Box   *seal.Box
	// Keyed says that there is a key to encrypt secrets with.
	Keyed bool
	// Check makes a sender of the provider and returns the sender's errors about
	// the settings, as a [fault.Fields]. It makes no connection.
	Check func(p Provider, secrets map[string]string) error
	// IsCountry reports whether there are phone numbers of a country.
	IsCountry func(code string) bool
}

// List lists the providers.
func (s *Service) List(ctx context.Context, by staff.Actor) ([]Provider, error) {
	if err := by.MayEverywhere(staff.Operate); err != nil {
		return nil, err
	}
	return s.Store.All(ctx)
}

// Health returns how the providers of a channel did in the last minute.
func (s *Service) Health(ctx context.Context, by staff.Actor, c delivery.Channel) (map[int64]Health, error) {
	if err := by.MayEverywhere(staff.Operate); err != nil {
		return nil, err
	}
	return s.Store.Health(ctx, c)
}

// Readable reports whether a key opens the secrets of the provider.
func (s *Service) Readable(p Provider) bool {
	_, err := p.Open(s.Box)
	return err == nil
}

// Provider returns one provider, or [ErrNotFound].
func (s *Service) Provider(ctx context.Context, by staff.Actor, id int64) (Provider, error) {
	if err := by.MayEverywhere(staff.Operate); err != nil {
		return Provider{}, err
	}
	return s.Store.Provider(ctx, id)
}

// Create configures a provider. It returns a [fault.Fields], [ErrNoKey] or [ErrTooMany].
func (s *Service) Create(ctx context.Context, by staff.Actor, in Input, requestKey string) (Provider, error) {
	if err := by.MayEverywhere(staff.Operate); err != nil {
		return Provider{}, err
	}
	p, err := s.apply(ctx, Provider{}, in, map[string]string{}, false)
	if err != nil {
		return p, err
	}
	return s.Store.Create(ctx, p, requestKey, by)
}

// Draft returns the provider that in describes, with its secrets, and stores nothing: to try it
// before it is saved. id is the provider that the form changes, of the version that the caller
// has seen; 0 = a new one. Draft returns the errors of [Service.Create] or [Service.Change], except
// [ErrNoKey] and [ErrTooMany].
func (s *Service) Draft(ctx context.Context, by staff.Actor, id, version int64, in Input) (p Provider, secrets map[string]string, err error) {
	if err := by.MayEverywhere(staff.Operate); err != nil {
		return p, nil, err
	}
	if secrets = map[string]string{}; id != 0 {
		if p, in, secrets, _, err = s.changing(ctx, by, id, version, in); err != nil {
			return p, nil, err
		}
	}
	p, _, err = s.settle(p, in, secrets, false)
	return p, secrets, err
}

// changing returns the stored provider with its secrets, and in with what cannot be changed. lost
// says that no key opens the secrets, and that in has all of them anew.
func (s *Service) changing(ctx context.Context, by staff.Actor, id, version int64, in Input) (before Provider, _ Input, secrets map[string]string, lost bool, err error) {
	before, err = s.Provider(ctx, by, id)
	if err != nil {
		return before, in, nil, false, err
	}
	if version != before.Version {
		return before, in, nil, false, fault.ErrStale
	}
	in.Kind, in.Shop = before.Kind, before.Shop // outcomes refer to them
	secrets, err = before.Open(s.Box)
	if err != nil {
		if !in.everySecret(before) {
			return before, in, nil, false, err
		}
		return before, in, map[string]string{}, true, nil
	}
	return before, in, secrets, false, nil
}

// Change stores in; secrets that in leaves empty stay as they are. version is the
// version that the caller has seen; if the provider has another version, Change returns
// [fault.ErrStale].
func (s *Service) Change(ctx context.Context, by staff.Actor, id, version int64, in Input) (Provider, error) {
	before, in, secrets, lost, err := s.changing(ctx, by, id, version, in)
	if err != nil {
		return before, err
	}
	after, err := s.apply(ctx, before, in, secrets, lost)
	if err == nil {
		err = sameApp(before, after)
	}
	if err != nil {
		return before, err
	}
	return s.Store.Save(ctx, after, after.Entry(by, "change", before.Shown(), after.Shown()))
}

// sameApp returns a [fault.Fields] for a provider of apps on phones that would reach another
// app than before: messages to the phones of the former would be skipped, and phones that name
// no app be taken for ones of the latter.
func sameApp(before, after Provider) error {
	field := map[Kind]string{APNS: "topic", FCM: "account"}[before.Kind]
	if field == "" || before.App() == after.App() {
		return nil
	}
	e := &fault.Fields{}
	e.Add(field, "rule.provider_app", "must be of the same app as before, %q; add a provider for the other app instead", before.App().Name)
	return e
}

// Switch enables or disables a provider. Messages that are with the provider stay there.
func (s *Service) Switch(ctx context.Context, by staff.Actor, id int64, enabled bool) (Provider, error) {
	before, err := s.Provider(ctx, by, id)
	if err != nil || before.Enabled == enabled {
		return before, err
	}
	after, action := before, "disable"
	if after.Enabled = enabled; enabled {
		action = "enable"
	}
	return s.Store.Save(ctx, after, after.Entry(by, action, before.Shown(), after.Shown()))
}

// Delete deletes a provider that is disabled, otherwise it returns [ErrInUse]. Its name
// stays for outcomes.
func (s *Service) Delete(ctx context.Context, by staff.Actor, id, version int64) error {
	p, err := s.Provider(ctx, by, id)
	switch {
	case err != nil:
		return err
	case p.Enabled:
		return ErrInUse
	case p.Version != version:
		return fault.ErrStale
	}
	return s.Store.Delete(ctx, p, p.Entry(by, "delete", p.Shown(), nil))
}

// settle returns p with the values of in, which it also puts into secrets. changed says that
// secrets differ from the secrets that p has sealed.
func (s *Service) settle(p Provider, in Input, secrets map[string]string, changed bool) (Provider, bool, error) {
	in, err := in.check(s.IsCountry)
	err = in.elsewhere(err, p)
	p.Shop, p.Kind, p.Spec = in.Shop, in.Kind, in.Spec
	p.Channel, _ = in.Kind.Channel()
	for _, f := range in.Kind.Fields() {
		if v := in.Secrets[f.Name]; f.Secret && v != "" && v != secrets[f.Name] {
			secrets[f.Name], changed = v, true
		}
		if f.Secret && slices.Contains(in.Clear, f.Name) && in.Secrets[f.Name] == "" {
			_, had := secrets[f.Name]
			delete(secrets, f.Name)
			changed = changed || had
		}
	}
	if err := in.missing(err, secrets); err != nil {
		return p, changed, err
	}
	p.Secrets = slices.Sorted(maps.Keys(secrets))
	p.derive(secrets)
	if s.Check == nil {
		return p, changed, nil
	}
	return p, changed, s.Check(p, secrets)
}

// apply is [Service.settle] with the secrets sealed.
func (s *Service) apply(ctx context.Context, p Provider, in Input, secrets map[string]string, changed bool) (Provider, error) {
	p, changed, err := s.settle(p, in, secrets, changed)
	if err != nil {
		return p, err
	}
	if p.ID == 0 { // after all that can be refused, so that no id is lost
		if p.ID, err = s.Store.NewID(ctx); err != nil {
			return p, err
		}
	}
	if !changed {
		return p, nil
	}
	if p.Sealed = nil; len(secrets) == 0 {
		return p, nil
	}
	if !s.Keyed {
		return p, ErrNoKey
	}
	raw, err := json.Marshal(secrets)
	if err == nil {
		p.Sealed = s.Box.Seal(p.row(), raw)
	}
	return p, err
}

// A Shown holds the fields of a provider that the audit log keeps: of secrets the names
// only.
type Shown struct {
	Spec
	Kind    Kind     `json:"kind"`
	Secrets []string `json:"secrets,omitempty"`
}

// Shown returns the fields of p that the audit log keeps.
func (p Provider) Shown() Shown {
	return Shown{p.Spec, p.Kind, p.Secrets}
}

// Entry returns the audit record of an action on the provider.
func (p Provider) Entry(by staff.Actor, action string, before, after any) staff.Entry {
	return staff.Entry{Actor: by, Action: "provider." + action, ObjectKind: "provider", ObjectID: strconv.FormatInt(p.ID, 10), ShopNumber: p.Shop, Before: before, After: after}
}
