package lookup

import (
	"context"

	"github.com/maypok86/otter/v2"

	"dropbell/domain/message"
)

// BookSource is where texts really are.
type BookSource interface {
	// Current returns the versions that count for the place up to one.
	Current(ctx context.Context, p message.Place, upTo int64) ([]message.Version, error)
}

// maxBooks bounds how many books are kept. One with mails in two languages takes
// about 100 kB once they were sent.
const maxBooks = 512

// Books caches the books of places; see [message.Source]. The texts of a version never
// change, so no entry becomes stale.
type Books struct {
	source BookSource
	cache  *otter.Cache[edition, *message.Book]
}

// edition is a book as of a version.
type edition struct {
	place message.Place
	upTo  int64
}

// NewBooks returns an empty cache in front of source.
func NewBooks(source BookSource) (*Books, error) {
	cache, err := otter.New(&otter.Options[edition, *message.Book]{MaximumSize: maxBooks, Logger: &otter.NoopLogger{}})
	return &Books{source, cache}, err
}

// Book returns the texts of the place up to a version. Several callers that ask
// for the same one cost one query.
func (b *Books) Book(ctx context.Context, p message.Place, upTo int64) (*message.Book, error) {
	if upTo < 0 {
		versions, err := b.source.Current(ctx, p, message.Newest)
		return message.NewBook(versions), err
	}
	return b.cache.Get(ctx, edition{p, upTo}, otter.LoaderFunc[edition, *message.Book](b.load))
}

func (b *Books) load(ctx context.Context, e edition) (*message.Book, error) {
	if e.upTo == 0 {
		return message.NewBook(nil), nil
	}
	// One caller loads for many: its hanging up must not fail the others.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadFor)
	defer cancel()
	versions, err := b.source.Current(ctx, e.place, e.upTo)
	return message.NewBook(versions), err
}
