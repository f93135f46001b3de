//! A receiver of OTLP on loopback, which keeps what it is sent.

use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use tokio::sync::mpsc;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

/// More than any test sends.
const SPANS_MAX: usize = 100;

/// Serves for as long as the runtime in which it was started.
pub(crate) struct Receiver {
    address: String,
    spans: mpsc::Receiver<Span>,
}

struct Service(mpsc::Sender<Span>);

#[tonic::async_trait]
impl TraceService for Service {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let resources = request.into_inner().resource_spans;
        for scope in resources.into_iter().flat_map(|resource| resource.scope_spans) {
            for span in scope.spans {
                self.0.try_send(span).unwrap();
            }
        }
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

impl Receiver {
    pub(crate) fn start() -> Self {
        let incoming = TcpIncoming::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = format!("http://{}", incoming.local_addr().unwrap());
        let (sender, spans) = mpsc::channel(SPANS_MAX);
        let service = TraceServiceServer::new(Service(sender));
        tokio::spawn(Server::builder().add_service(service).serve_with_incoming(incoming));
        Self { address, spans }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The spans that have arrived by now.
    pub(crate) fn received(&mut self) -> Vec<Span> {
        std::iter::from_fn(|| self.spans.try_recv().ok()).collect()
    }
}

/// Attributes as text, without what each of them has.
pub(crate) fn attributes(all: &[KeyValue]) -> Vec<String> {
    let told = |attribute: &KeyValue| {
        let value = match attribute.value.as_ref().unwrap().value.as_ref().unwrap() {
            Value::StringValue(text) => text.clone(),
            Value::IntValue(number) => number.to_string(),
            other => format!("{other:?}"),
        };
        format!("{}={value}", attribute.key)
    };
    all.iter().map(told).collect()
}
