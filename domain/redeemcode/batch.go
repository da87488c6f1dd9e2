package redeemcode

import (
	"strings"
	"time"
	"unicode/utf8"

	"dropbell/domain/fault"
	"dropbell/domain/job"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

// BatchState is where a batch is in its life.
type BatchState string

// The states of a batch. Codes can be used only if their batch is ready.
const (
	Generating BatchState = "generating"
	Ready      BatchState = "ready"
	Revoked    BatchState = "revoked"
)

// Bounds of a batch.
const (
	MaxCount  = 1_000_000
	MaxReason = 500
	// PartSize is how many codes share one checksum.
	PartSize = 10_000
)

// Faults of staff's side.
var (
	ErrBatchNotFound = fault.New(fault.NotFound, "code_batch_not_found", "there is no such batch of codes; check its id in the list of batches")
	ErrNotByCode     = fault.New(fault.Conflict, "not_by_code", "coupons of this template are not obtained by code; choose a drop whose coupons are")
	ErrEnded         = fault.New(fault.Conflict, "template_not_open", "this drop is over; new codes could not be used")
	ErrNotReady      = fault.New(fault.Conflict, "codes_not_ready", "codes are still being generated; try again when they are ready")
	ErrNoCodes       = fault.New(fault.NotFound, "no_codes", "this template has no codes that could be exported; generate a batch first")
	ErrRevoked       = fault.New(fault.Conflict, "codes_revoked", "these codes were revoked; generate new ones")
	ErrNoSerials     = fault.New(fault.Conflict, "codes_exhausted", "there are not enough serial numbers left for so many codes; ask for fewer")
)

// A Batch is a run of serial numbers whose codes were made together, for one
// template and with one key. The runs of different batches never overlap.
type Batch struct {
	ID           int64
	TemplateID   int64
	TemplateName string
	ShopNumber   int64
	ShopTimezone string
	First        Serial
	Count        int64
	Key          KeyID
	State        BatchState
	// Generated is the number of codes that were derived, verified and put under a
	// checksum. Used is the number of codes for which a coupon was issued.
	Generated, Used int64
	// JobID and JobState are the background work that generates the batch.
	JobID        int64
	JobState     job.State
	CreatedBy    string
	CreatedAt    time.Time
	ReadyAt      *time.Time
	RevokedAt    *time.Time
	RevokedBy    string
	RevokeReason string
}

// Holds reports whether s is one of the batch's serial numbers.
func (b Batch) Holds(s Serial) bool { return s >= b.First && s < b.First+Serial(b.Count) }

// Stopped reports whether generation ended early: the job failed or was cancelled,
// and may have been removed since. Codes of such a batch never work.
func (b Batch) Stopped() bool {
	return b.State == Generating && b.JobState != job.Waiting && b.JobState != job.Running
}

// Zone returns the shop's time zone, UTC when unknown.
func (b Batch) Zone() *time.Location {
	return template.Template{ShopTimezone: b.ShopTimezone}.Zone()
}

// parts returns how many checksums the batch has.
func (b Batch) parts() int64 { return (b.Count + PartSize - 1) / PartSize }

// part returns the serial numbers under checksum i.
func (b Batch) part(i int64) (first Serial, count int64) {
	return b.First + Serial(i*PartSize), min(PartSize, b.Count-i*PartSize)
}

// takes returns nil if a code of the batch, read as c, may be used now, otherwise
// [ErrInvalid]. Codes that were never sold and codes that were revoked get the same
// answer.
func (b Batch) takes(c Code) error {
	if b.Key != c.Key() || b.State != Ready {
		return ErrInvalid
	}
	return nil
}

// A Part is the checksum of one part of a batch: SHA-256 of its codes as text, each
// followed by a line feed. It proves without storing a code that codes exported
// later are the generated codes.
type Part struct {
	Number int64
	Codes  int64
	SHA256 [32]byte
}

// A Use is the claim for which a code was used, or the user who entered an access code.
type Use struct {
	UserID   user.ID // 0 = the user was erased
	CouponID int64   // 0 = it is an access code
	At       time.Time
}

// A Supply compares the used and usable codes with the stock of coupons. There may
// be more codes than coupons, since not every code is redeemed. A code that is
// redeemed too late is refused as sold out, and stays valid in case the stock is
// raised.
type Supply struct {
	// Outstanding counts unused codes of batches that are not revoked.
	Outstanding int64
	// Left is how many coupons are not issued yet.
	Left int64
}

// Excess returns how many codes cannot all be redeemed.
func (s Supply) Excess() int64 { return max(0, s.Outstanding-s.Left) }

// checkCount refuses numbers of codes out of bounds.
func checkCount(count int64) error {
	e := &fault.Fields{}
	if count < 1 || count > MaxCount {
		e.Add("count", "rule.code_count", "must be between 1 and %d", MaxCount)
	}
	return e.Err()
}

// checkReason refuses reasons that cannot be kept, and none at all.
func checkReason(reason string) error {
	e := &fault.Fields{}
	switch n := utf8.RuneCountInString(reason); {
	case strings.TrimSpace(reason) == "":
		e.Add("reason", "rule.required", "is required")
	case n > MaxReason:
		e.Add("reason", "rule.too_long", "must have at most %d characters", MaxReason)
	case !utf8.ValidString(reason) || strings.ContainsRune(reason, 0):
		e.Add("reason", "rule.text", "must be valid text without NUL characters")
	}
	return e.Err()
}

// sellable returns nil if codes may be made for t. It returns [ErrNotByCode] if t
// does not take codes and has no door for access codes, and [ErrEnded] after t's end. A draft may have codes,
// because printing takes longer than publishing.
func sellable(t template.Template, now time.Time) error {
	if t.Obtain != template.ByCode && !t.TakesAccessCodes() {
		return ErrNotByCode
	}
	if s := t.State(now); s == template.Closed || s == template.Cancelled {
		return ErrEnded
	}
	return nil
}

// A Query selects batches, newest first.
type Query struct {
	TemplateID int64   // 0 = of all templates
	Shops      []int64 // empty = all
	Before     int64   // keyset: only batches older than this one
	Limit      int
}
