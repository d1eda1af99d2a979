// What an application with the Go client sees of schemas, delays, acknowledgements, policies and what
// is absent, or of a full disk: a line for each case on the standard output, and status 1 when one is
// not as promised.
// Arguments: the broker's service URL and admin URL, and "full-disk" for the latter.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/log"
	"github.com/sirupsen/logrus"
)

const (
	wait     = 15 * time.Second
	delay    = 1500 * time.Millisecond
	order    = `{"type":"record","name":"Order","fields":[{"name":"id","type":"long"}]}`
	invoice  = `{"type":"record","name":"Invoice","fields":[{"name":"sum","type":"double"}]}`
	expected = "IncompatibleSchema"
)

// Order is a record.
type Order struct {
	ID int64 `avro:"id" json:"id"`
}

// Cases are played one after the other.
type Cases struct{ failures int }

func (c *Cases) play(name string, promised string, see func() (string, error)) {
	seen, err := see()
	if err != nil {
		seen = err.Error()
	}
	word := "ok    "
	if !strings.Contains(seen, promised) {
		word = "WRONG "
		c.failures++
	}
	fmt.Printf("%s%s: %s\n", word, name, strings.ReplaceAll(seen, "\n", " "))
}

func main() {
	client, err := pulsar.NewClient(pulsar.ClientOptions{URL: os.Args[1], Logger: quiet()})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	cases := &Cases{}
	if len(os.Args) > 3 && os.Args[3] == "full-disk" {
		fullDisk(cases, client)
	} else {
		schemas(cases, client)
		delays(cases, client)
		acknowledgements(cases, client)
		absent(cases, client)
		policies(cases, client, os.Args[2]+"/admin/v2/")
	}
	client.Close()
	if cases.failures > 0 {
		fmt.Println(cases.failures, "not as promised")
		os.Exit(1)
	}
	fmt.Println("all as promised")
}

func schemas(cases *Cases, client pulsar.Client) {
	avro := pulsar.NewAvroSchema(order, nil)
	other := pulsar.NewAvroSchema(invoice, nil)
	record := func(topic string, schema pulsar.Schema) func() (string, error) {
		return func() (string, error) {
			message, err := passed(client, topic, schema, &Order{7})
			if err != nil {
				return "", err
			}
			var found Order
			err = message.GetSchemaValue(&found)
			return fmt.Sprint(found.ID), err
		}
	}
	cases.play("AVRO arrives", "7", record("go-AVRO", avro))
	cases.play("JSON arrives", "7", record("go-JSON", pulsar.NewJSONSchema(order, nil)))
	cases.play("STRING arrives", "text", func() (string, error) {
		message, err := passed(client, "go-STRING", pulsar.NewStringSchema(nil), "text")
		if err != nil {
			return "", err
		}
		return string(message.Payload()), nil
	})
	cases.play("a producer of another record", expected, func() (string, error) {
		producer, err := client.CreateProducer(pulsar.ProducerOptions{Topic: "go-AVRO", Schema: other})
		return closed(producer, err)
	})
	cases.play("a consumer of another record", expected, func() (string, error) {
		consumer, err := client.Subscribe(pulsar.ConsumerOptions{
			Topic: "go-AVRO", SubscriptionName: "other", Schema: other,
		})
		if err == nil {
			consumer.Close()
		}
		return "", err
	})
	cases.play("a message with a schema of its own", "sent", func() (string, error) {
		return sendOne(client, "go-AVRO", avro)
	})
	cases.play("... and another one", "Incompatible schema", func() (string, error) {
		return sendOne(client, "go-AVRO", other)
	})
}

func delays(cases *Cases, client pulsar.Client) {
	cases.play("delayed messages come when they are due", "past plain after at", func() (string, error) {
		ctx, cancel := context.WithTimeout(context.Background(), wait)
		defer cancel()
		consumer, err := client.Subscribe(pulsar.ConsumerOptions{
			Topic: "go-delays", SubscriptionName: "s", Type: pulsar.Shared,
		})
		if err != nil {
			return "", err
		}
		defer consumer.Close()
		producer, err := client.CreateProducer(pulsar.ProducerOptions{Topic: "go-delays"})
		if err != nil {
			return "", err
		}
		defer producer.Close()
		begin := time.Now()
		for _, message := range []pulsar.ProducerMessage{
			{Payload: []byte("after"), DeliverAfter: delay},
			{Payload: []byte("at"), DeliverAt: begin.Add(2 * delay)},
			{Payload: []byte("past"), DeliverAt: time.UnixMilli(1)},
			{Payload: []byte("plain")},
		} {
			if _, err := producer.Send(ctx, &message); err != nil {
				return "", err
			}
		}
		var texts []string
		for range 4 {
			message, err := consumer.Receive(ctx)
			if err != nil {
				return "", err
			}
			texts = append(texts, string(message.Payload()))
			early := map[string]time.Duration{"after": delay, "at": 2 * delay}[texts[len(texts)-1]]
			// Clients send whole milliseconds.
			if took := time.Since(begin); took < early-time.Millisecond {
				return "", fmt.Errorf("%v after %s", texts, took)
			}
		}
		return strings.Join(texts, " "), nil
	})
}

// policies are what the admin API sets or shows; url is its beginning.
func policies(cases *Cases, client pulsar.Client, url string) {
	cases.play("properties of a subscription", `{"owner":"team"}`, func() (string, error) {
		consumer, err := client.Subscribe(pulsar.ConsumerOptions{
			Topic: "go-properties", SubscriptionName: "s",
			SubscriptionProperties: map[string]string{"owner": "team"},
		})
		if err != nil {
			return "", err
		}
		defer consumer.Close()
		return ask("GET", url+"persistent/public/default/go-properties/subscription/s/properties", "")
	})
	cases.play("a namespace that requires encryption", "ncryption", func() (string, error) {
		namespace := url + "namespaces/public/go-encrypted"
		_, made := ask("PUT", namespace, "{}")
		_, set := ask("POST", namespace+"/encryptionRequired", "true")
		if err := errors.Join(made, set); err != nil {
			return "", err
		}
		producer, err := client.CreateProducer(pulsar.ProducerOptions{
			Topic: "persistent://public/go-encrypted/t",
		})
		return closed(producer, err)
	})
}

// absent is what the broker does not have: it fails at once.
func absent(cases *Cases, client pulsar.Client) {
	cases.play("Key_Shared", "Key_Shared is not supported", func() (string, error) {
		consumer, err := client.Subscribe(pulsar.ConsumerOptions{
			Topic: "go-absent", SubscriptionName: "s", Type: pulsar.KeyShared,
		})
		if err == nil {
			consumer.Close()
		}
		return "", err
	})
	cases.play("a non-persistent topic", "NotAllowedError", func() (string, error) {
		producer, err := client.CreateProducer(pulsar.ProducerOptions{
			Topic: "non-persistent://public/default/t",
		})
		return closed(producer, err)
	})
	cases.play("transactions", "refused", func() (string, error) {
		other, err := pulsar.NewClient(pulsar.ClientOptions{
			URL: os.Args[1], EnableTransaction: true, Logger: quiet(),
		})
		if err == nil {
			other.Close()
			return "made", nil
		}
		return "refused: " + err.Error(), nil
	})
}

// quiet is a log that shows nothing.
func quiet() log.Logger {
	hidden := logrus.New()
	hidden.SetLevel(logrus.PanicLevel)
	return log.NewLoggerWithLogrus(hidden)
}

// ask is the body of the admin API's answer, which must not be a refusal.
func ask(method, url, body string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/json")
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err == nil && reply.StatusCode >= http.StatusMultipleChoices {
		err = fmt.Errorf("%s %s: %d %s", method, url, reply.StatusCode, text)
	}
	return string(text), err
}

// passed sends a value and receives it, with one schema.
func passed(client pulsar.Client, topic string, schema pulsar.Schema, value any) (pulsar.Message, error) {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	consumer, err := client.Subscribe(pulsar.ConsumerOptions{
		Topic: topic, SubscriptionName: "s", Schema: schema,
	})
	if err != nil {
		return nil, err
	}
	defer consumer.Close()
	producer, err := client.CreateProducer(pulsar.ProducerOptions{Topic: topic, Schema: schema})
	if err != nil {
		return nil, err
	}
	defer producer.Close()
	if _, err := producer.Send(ctx, &pulsar.ProducerMessage{Value: value}); err != nil {
		return nil, err
	}
	return consumer.Receive(ctx)
}

// sendOne sends a message whose schema its producer does not have.
func sendOne(client pulsar.Client, topic string, schema pulsar.Schema) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	producer, err := client.CreateProducer(pulsar.ProducerOptions{Topic: topic})
	if err != nil {
		return "", err
	}
	defer producer.Close()
	_, err = producer.Send(ctx, &pulsar.ProducerMessage{Value: &Order{8}, Schema: schema})
	return "sent", err
}

func closed(producer pulsar.Producer, err error) (string, error) {
	if err == nil {
		producer.Close()
	}
	return "", err
}
