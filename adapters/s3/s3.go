// Package s3 keeps the files of pictures and of exports in a store that speaks the protocol of Amazon S3.
package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"dropbell/domain/export"
	"dropbell/domain/picture"
)

// Config says which store to use. Endpoint is an http or https address without a path; Region may
// be empty for stores that have none.
type Config struct {
	Endpoint, Bucket, Region, KeyID, Secret string
}

// within bounds one call.
const within = 10 * time.Second

// Files keeps files in one bucket, which must exist. It is a [picture.Files] and an [export.Files].
type Files struct {
	client *minio.Client
	bucket string
}

// New returns the files of the bucket. It sends no request.
func New(c Config) (*Files, error) {
	u, err := url.Parse(c.Endpoint)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("the address of the S3 store %q is none", c.Endpoint)
	}
	client, err := minio.New(u.Host, &minio.Options{Creds: credentials.NewStaticV4(c.KeyID, c.Secret, ""), Secure: u.Scheme == "https", Region: c.Region})
	if err != nil {
		return nil, fmt.Errorf("S3 store: %w", err)
	}
	return &Files{client, c.Bucket}, nil
}

func key(p picture.Picture) string { return "pictures/" + strconv.FormatInt(p.Shop, 10) + "/" + p.Hash }

// Put stores a file.
func (f *Files) Put(ctx context.Context, p picture.Picture, content []byte) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	_, err := f.client.PutObject(ctx, f.bucket, key(p), bytes.NewReader(content), int64(len(content)), minio.PutObjectOptions{ContentType: p.ContentType()})
	return unavailable(err)
}

// part is how much of a file whose size is not known is sent at a time, and kept in memory meanwhile.
const part = 8 << 20

// Write is part of [export.Files].
func (f *Files) Write(ctx context.Context, key string, content io.Reader) error {
	r := &reading{from: content}
	_, err := f.client.PutObject(ctx, f.bucket, key, r, -1, minio.PutObjectOptions{ContentType: contentType(key), PartSize: part})
	switch {
	case r.err != nil:
		return r.err
	case err != nil:
		return export.ErrUnreachable.Because("the store of exports: %s", err)
	}
	return nil
}

// reading remembers the error of a content, which is no failure of the store.
type reading struct {
	from io.Reader
	err  error
}

func (r *reading) Read(b []byte) (int, error) {
	n, err := r.from.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}

func contentType(key string) string {
	if strings.HasSuffix(key, ".json") {
		return "application/json"
	}
	return "application/gzip"
}

// Get returns a file, or [picture.ErrNotFound].
func (f *Files) Get(ctx context.Context, p picture.Picture) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	object, err := f.client.GetObject(ctx, f.bucket, key(p), minio.GetObjectOptions{})
	if err != nil {
		return nil, unavailable(err)
	}
	defer func() { _ = object.Close() }()
	content, err := io.ReadAll(io.LimitReader(object, picture.MaxBytes))
	if minio.ToErrorResponse(err).Code == minio.NoSuchKey {
		return nil, picture.ErrNotFound
	}
	return content, unavailable(err)
}

// Remove removes a file.
func (f *Files) Remove(ctx context.Context, p picture.Picture) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return unavailable(f.client.RemoveObject(ctx, f.bucket, key(p), minio.RemoveObjectOptions{}))
}

func unavailable(err error) error {
	if err == nil {
		return nil
	}
	return picture.ErrStore.Because("the store of pictures does not answer as it should (%s); try again", minio.ToErrorResponse(err).Code)
}
