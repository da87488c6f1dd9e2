// Package provider holds the rules of providers that staff configure: how a provider
// of a channel is chosen for a message, which settings a provider has, and how its
// secrets are kept.
package provider

import (
	"slices"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/fault"
	"dropbell/domain/field"
	"dropbell/domain/seal"
)

// SealPurpose is the purpose for which the keys that seal secrets are derived.
const SealPurpose = "dropbell provider secrets"

// Bounds of the values that staff can set.
const (
	MaxWeight    = 1000
	MaxOrder     = 1000
	MaxProviders = 1000
	maxName      = 60
	maxSetting   = 20_000
	maxCountries = 250
)

// Faults of this room.
var (
	ErrNotFound = fault.New(fault.NotFound, "provider_not_found", "there is no such provider; look at the list of providers")
	ErrTooMany  = fault.New(fault.Conflict, "too_many_providers", "there are as many providers as there can be; delete one first").Told("provider.too_many")
	ErrNoKey    = fault.New(fault.Conflict, "providers_key_missing",
		"secrets of providers are stored encrypted only: set PROVIDERS_KEY for web and worker and restart both").Told("provider.no_key")
	ErrSealed = fault.New(fault.Conflict, "provider_secrets_sealed",
		"none of the keys in PROVIDERS_KEY opens the secrets of this provider: add the key that they were encrypted with, or enter every secret again").Told("provider.sealed")
	ErrInUse = fault.New(fault.Conflict, "provider_in_use", "the provider is enabled; disable it first, so that messages go to the others").Told("provider.in_use")
)

// A Spec is the part of a provider that staff can change, without its secrets. The tags are
// the names in the audit log and in the database.
type Spec struct {
	Name string `json:"name" db:"name"`
	// Order ranks providers: providers with the lowest Order are asked first. Among
	// equal Orders Weight is the provider's share, from 1 on.
	Order  int `json:"order" db:"priority"`
	Weight int `json:"weight" db:"weight"`
	// Countries are ISO 3166 codes of the recipients it is for; none = all.
	Countries []string `json:"countries,omitempty" db:"countries"`
	Enabled   bool     `json:"enabled" db:"enabled"`
	// Settings are the settings that are no secrets, by the names of [Kind.Fields].
	Settings map[string]string `json:"settings,omitempty" db:"settings"`
}

// Fields are the fields of a [Spec] with the names of their columns.
var Fields = field.Tagged[Spec]("db")

// A Provider is one account at a service that delivers the messages of a channel.
type Provider struct {
	ID      int64
	Shop    int64 // the shop whose messages it delivers; 0 = all shops
	Channel delivery.Channel
	Kind    Kind
	Spec
	// Sealed are the encrypted secrets, nil = none; Secrets are their names.
	Sealed  []byte
	Secrets []string
	// Version grows with each change.
	Version   int64
	CreatedAt time.Time
	CreatedBy string
	UpdatedAt time.Time
	DeletedAt *time.Time
}

// Has reports whether the secret of that name is set.
func (p Provider) Has(secret string) bool { return slices.Contains(p.Secrets, secret) }

// row is the row that the provider's secrets are sealed for.
func (p Provider) row() string { return seal.Row("providers", p.ID) }

// Open returns the provider's secrets by name, or [ErrSealed].
func (p Provider) Open(box *seal.Box) (map[string]string, error) {
	if len(p.Sealed) == 0 {
		return map[string]string{}, nil
	}
	raw, err := box.Open(p.row(), p.Sealed)
	if err != nil {
		return nil, ErrSealed
	}
	return decodeSecrets(raw)
}
