package hook

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"reflect"
	"strconv"
	"time"

	"dropbell/domain/fault"
	"dropbell/domain/seal"
	"dropbell/domain/staff"
)

// A Delivery is one event on its way to one endpoint.
type Delivery struct {
	ID, EndpointID, EventID int64
	Cause                   string // event, replay or test
	State                   string // waiting, delivered or failed
	Attempts                int
	NextAt                  time.Time
	CreatedAt               time.Time
	DoneAt                  *time.Time
	Type                    Type
	Subject                 string
	Sequence                int64
	Items                   int
	// The latest attempt: its HTTP status, 0 = no answer, and the error.
	Status int
	Error  string
}

// MessageID is the header webhook-id: the same whenever the event is sent again.
func MessageID(eventID int64) string { return "msg_" + itoa(eventID) }

// An Attempt is one request that carried a delivery.
type Attempt struct {
	Attempt  int
	At       time.Time
	Took     time.Duration
	Status   int
	Error    string
	Response string
}

// Details are a delivery with its request and its answer.
type Details struct {
	Delivery
	Payload string
	Tries   []Attempt
}

// DeliveryQuery selects deliveries of an endpoint, the newest first.
type DeliveryQuery struct {
	EndpointID int64
	State      string // "" = all
	Before     int64  // keyset; 0 = from the newest on
	Limit      int
}

// An Hour is how an endpoint did in one hour.
type Hour struct {
	Hour              time.Time
	Delivered, Failed int64
	Took              time.Duration // of all attempts together
}

// A Stored event as the stream yields it.
type Stored struct {
	ID      int64
	Type    Type
	At      time.Time
	Payload string
}

// Store keeps endpoints, events and deliveries.
type Store interface {
	// NewEndpointID draws the id of a new endpoint, for which its secret is sealed.
	NewEndpointID(ctx context.Context) (int64, error)
	// CreateEndpoint stores n under its id and records that. It returns [ErrTooMany],
	// [ErrRepeated], or a [fault.Fields] for a shop that does not exist.
	CreateEndpoint(ctx context.Context, n Endpoint, requestKey string, by staff.Actor) (Endpoint, error)
	// Endpoint returns [ErrNotFound] if there is none.
	Endpoint(ctx context.Context, id int64) (Endpoint, error)
	// Endpoints lists the endpoints of the shops given, none = all shops, by shop and id.
	Endpoints(ctx context.Context, shops []int64) ([]Endpoint, error)
	// SaveEndpoint stores in if the version is still e's, otherwise it returns
	// [fault.ErrStale].
	SaveEndpoint(ctx context.Context, e Endpoint, in Input, entry staff.Entry) (Endpoint, error)
	// RotateSecret makes the present secret the old secret for the time oldFor. If
	// the version is no longer e's, it returns [fault.ErrStale].
	RotateSecret(ctx context.Context, e Endpoint, sealed []byte, oldFor time.Duration, entry staff.Entry) (Endpoint, error)
	RemoveEndpoint(ctx context.Context, id int64, entry staff.Entry) error
	// SendTest stores an event and its only delivery and returns that.
	SendTest(ctx context.Context, e Endpoint, test Event, entry staff.Entry) (deliveryID int64, err error)
	Deliveries(ctx context.Context, q DeliveryQuery) ([]Delivery, error)
	// Delivery returns [ErrDeliveryNotFound] if there is none.
	Delivery(ctx context.Context, endpointID, id int64) (Details, error)
	// Replay starts another delivery of the same event, with all attempts ahead. A
	// delivery that waits is made due now instead. It returns [ErrDeliveryNotFound]
	// if there is no such delivery.
	Replay(ctx context.Context, endpointID, id int64, entry staff.Entry) error
	// ReplaySince starts a delivery of each stored event that the endpoint wants
	// and that happened at since or later, the oldest first and at most limit, and
	// returns how many. Events with a waiting delivery are left out.
	ReplaySince(ctx context.Context, e Endpoint, since time.Time, limit int, entry staff.Entry) (int64, error)
	// Hours returns the hours from since on in which something was sent.
	Hours(ctx context.Context, endpointID int64, since time.Time) ([]Hour, error)
	// Listen renews the listener and returns up to limit stored events of the shop
	// with ids greater than after.
	Listen(ctx context.Context, l Listener, after int64, limit int) ([]Stored, error)
	// Latest returns the id of the shop's newest stored event, 0 if there is none.
	Latest(ctx context.Context, shop int64) (int64, error)
}

// A Listener is a key that reads a shop's events as a stream.
type Listener struct {
	Shop  int64
	Name  string
	Types []Type // none = all
}

// ListenFor is how long events are kept for a listener that reads no more.
const ListenFor = 10 * time.Minute

// Service holds the use cases of staff and shops.
type Service struct {
	Store Store
	Box   *seal.Box
	// Insecure allows http and private addresses, for development.
	Insecure bool
	// Wake makes a worker send the due deliveries of the endpoint; it may fail.
	Wake func(ctx context.Context, endpointID int64)
	Now  func() time.Time
}

// Create registers an endpoint and returns its secret, which is shown once. It
// returns [staff.ErrForbidden], [ErrTooMany], [ErrRepeated] or a [fault.Fields].
func (s *Service) Create(ctx context.Context, by staff.Actor, shop int64, in Input, requestKey string) (Endpoint, string, error) {
	if err := by.May(staff.Operate, shop); err != nil {
		return Endpoint{}, "", err
	}
	in, err := in.check(s.Insecure)
	if shop <= 0 {
		e := &fault.Fields{List: fieldsOf(err)}
		e.Add("shop_number", "rule.shop_number", "must be a positive number")
		return Endpoint{}, "", e
	}
	if err != nil {
		return Endpoint{}, "", err
	}
	id, err := s.Store.NewEndpointID(ctx)
	if err != nil {
		return Endpoint{}, "", err
	}
	secret, sealed := s.newSecret(id)
	n := Endpoint{ID: id, Shop: shop, Input: in, Secrets: [][]byte{sealed}}
	if !in.Enabled {
		n.Why = ByStaff
	}
	created, err := s.Store.CreateEndpoint(ctx, n, requestKey, by)
	return created, secret, err
}

func fieldsOf(err error) []fault.Field {
	if f, ok := err.(*fault.Fields); ok {
		return f.List
	}
	return nil
}

// newSecret returns a secret as it is shown, and sealed for the endpoint.
func (s *Service) newSecret(endpointID int64) (shown string, sealed []byte) {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails, see crypto/rand
	return "whsec_" + base64.StdEncoding.EncodeToString(key), s.Box.Seal(secretRow(endpointID), key)
}

// Endpoint returns an endpoint that the actor may see, otherwise [ErrNotFound].
func (s *Service) Endpoint(ctx context.Context, by staff.Actor, id int64) (Endpoint, error) {
	if err := by.May(staff.View, 0); err != nil {
		return Endpoint{}, err
	}
	e, err := s.Store.Endpoint(ctx, id)
	if err == nil && !by.Can(staff.View, e.Shop) {
		return Endpoint{}, ErrNotFound
	}
	return e, err
}

// Endpoints lists the endpoints that the actor may see, of one shop or of all shops (0).
func (s *Service) Endpoints(ctx context.Context, by staff.Actor, shop int64) ([]Endpoint, error) {
	if err := by.May(staff.View, shop); err != nil {
		return nil, err
	}
	shops := by.Shops
	if shop != 0 {
		shops = []int64{shop}
	}
	return s.Store.Endpoints(ctx, shops)
}

// own returns an endpoint that the actor may change.
func (s *Service) own(ctx context.Context, by staff.Actor, id int64) (Endpoint, error) {
	e, err := s.Endpoint(ctx, by, id)
	if err != nil {
		return e, err
	}
	return e, by.May(staff.Operate, e.Shop)
}

// Change stores in. version is the version that the caller has seen; 0 = any.
func (s *Service) Change(ctx context.Context, by staff.Actor, id, version int64, in Input) (Endpoint, error) {
	e, err := s.own(ctx, by, id)
	if err != nil {
		return e, err
	}
	if in, err = in.check(s.Insecure); err != nil {
		return e, err
	}
	if version != 0 && version != e.Version {
		return e, fault.ErrStale
	}
	after := Endpoint{Input: in}
	if !in.Enabled {
		after.Why = ByStaff
		if !e.Enabled {
			after.Why = e.Why
		}
	}
	if reflect.DeepEqual(e.Input, in) {
		return e, nil
	}
	changed, err := s.Store.SaveEndpoint(ctx, e, in, e.Entry(by, "change", e.Shown(), after.Shown()))
	if err == nil && changed.Enabled {
		s.Wake(ctx, id)
	}
	return changed, err
}

// Rotate replaces the secret and returns the new secret, which is shown once. The
// old secret still signs for [OldSecretFor].
func (s *Service) Rotate(ctx context.Context, by staff.Actor, id, version int64) (Endpoint, string, error) {
	e, err := s.own(ctx, by, id)
	if err != nil {
		return e, "", err
	}
	if version != 0 && version != e.Version {
		return e, "", fault.ErrStale
	}
	secret, sealed := s.newSecret(e.ID)
	e, err = s.Store.RotateSecret(ctx, e, sealed, OldSecretFor, e.Entry(by, "rotate", nil, nil))
	return e, secret, err
}

// Remove removes an endpoint with its deliveries.
func (s *Service) Remove(ctx context.Context, by staff.Actor, id int64) error {
	e, err := s.own(ctx, by, id)
	if err != nil {
		return err
	}
	return s.Store.RemoveEndpoint(ctx, id, e.Entry(by, "remove", e.Shown(), nil))
}

// Test sends an event that says it is a test and returns its delivery. It returns
// [ErrDisabled] for a disabled endpoint.
func (s *Service) Test(ctx context.Context, by staff.Actor, id int64) (deliveryID int64, err error) {
	e, err := s.own(ctx, by, id)
	if err != nil {
		return 0, err
	}
	if !e.Enabled {
		return 0, ErrDisabled
	}
	if deliveryID, err = s.Store.SendTest(ctx, e, NewTest(e, s.Now()), e.Entry(by, "test", nil, nil)); err == nil {
		s.Wake(ctx, id)
	}
	return deliveryID, err
}

// Deliveries lists an endpoint's deliveries.
func (s *Service) Deliveries(ctx context.Context, by staff.Actor, q DeliveryQuery) ([]Delivery, error) {
	if _, err := s.Endpoint(ctx, by, q.EndpointID); err != nil {
		return nil, err
	}
	return s.Store.Deliveries(ctx, q)
}

// Delivery returns one delivery with its bodies.
func (s *Service) Delivery(ctx context.Context, by staff.Actor, endpointID, id int64) (Details, error) {
	if _, err := s.Endpoint(ctx, by, endpointID); err != nil {
		return Details{}, err
	}
	return s.Store.Delivery(ctx, endpointID, id)
}

// Replay sends one delivery again, with the same id.
func (s *Service) Replay(ctx context.Context, by staff.Actor, endpointID, id int64) error {
	e, err := s.own(ctx, by, endpointID)
	if err != nil {
		return err
	}
	if !e.Enabled {
		return ErrDisabled
	}
	err = s.Store.Replay(ctx, endpointID, id, e.Entry(by, "replay", nil, map[string]any{"delivery": itoa(id)}))
	if err == nil {
		s.Wake(ctx, endpointID)
	}
	return err
}

// ReplaySince sends again all events that are stored since the instant, up to
// [MaxReplay], and returns how many.
func (s *Service) ReplaySince(ctx context.Context, by staff.Actor, endpointID int64, since time.Time) (int64, error) {
	e, err := s.own(ctx, by, endpointID)
	if err != nil {
		return 0, err
	}
	if !e.Enabled {
		return 0, ErrDisabled
	}
	n, err := s.Store.ReplaySince(ctx, e, since, MaxReplay, e.Entry(by, "replay_since", nil, map[string]any{"since": since.UTC()}))
	if err == nil {
		s.Wake(ctx, endpointID)
	}
	return n, err
}

// Hours returns how the endpoint did since the instant.
func (s *Service) Hours(ctx context.Context, by staff.Actor, endpointID int64, since time.Time) ([]Hour, error) {
	if _, err := s.Endpoint(ctx, by, endpointID); err != nil {
		return nil, err
	}
	return s.Store.Hours(ctx, endpointID, since)
}

// Listen returns up to limit events of a shop with ids greater than after, oldest
// first, and the position to continue at. after -1 means the position after the
// newest event.
func (s *Service) Listen(ctx context.Context, by staff.Actor, shop int64, types []Type, after int64, limit int) (list []Stored, next int64, err error) {
	if shop <= 0 {
		e := &fault.Fields{}
		e.Add("shop_number", "rule.shop_number", "must be a positive number")
		return nil, after, e
	}
	if err := by.May(staff.Operate, shop); err != nil {
		return nil, after, err
	}
	if after < 0 {
		if after, err = s.Store.Latest(ctx, shop); err != nil {
			return nil, after, err
		}
		limit = 0
	}
	list, err = s.Store.Listen(ctx, Listener{Shop: shop, Name: by.Label, Types: types}, after, limit)
	if n := len(list); n > 0 {
		after = list[n-1].ID
	}
	return list, after, err
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
