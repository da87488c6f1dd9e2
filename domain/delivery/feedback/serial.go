package feedback

import "context"

// A Serial is a provider's name of a message that it has taken.
type Serial struct {
	ID string
	// Reference is the signed text of the message's [Ref].
	Reference string
}

// Serials keeps the names of messages for providers whose reports name nothing else.
type Serials interface {
	// Keep stores the serials for four days. A serial that is stored already is left unchanged.
	Keep(ctx context.Context, provider string, serials []Serial) error
	// Find returns the references of the known serials, by serial.
	Find(ctx context.Context, provider string, ids []string) (map[string]string, error)
	// Early stores reports whose serials are not known. They are kept until they are matched or
	// [EarlyKept] has passed; a report that is stored already is left unchanged. See [Matcher].
	Early(ctx context.Context, provider string, list []Early) error
}
